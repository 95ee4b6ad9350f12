/** Implements `mints give-up`, which marks pending assets that can never be minted as failed. */
import { InvalidArgumentError } from '@commander-js/extra-typings';
import { type AuditEntry, type Author, createAuditLog } from '@playline/access-keys';
import {
  ADDRESS_EXPECTED,
  auditEntryCodec,
  createRecordReader,
  frameRecord,
  type MintStateRecord,
  mintStateCodec,
  parseAddress,
  TOPICS,
  toHexText,
  toMintStateKey,
  toSignerKey,
} from '@playline/contracts';
import type { MintCollection, MintState } from '@playline/mints';
import { type AtomicPublisher, isTakenOver, type LogReader, type Producer } from '@playline/stream';
import { awaitWritable, type Schemas } from '../await-store.ts';
import { confirm, EXIT, type ExitCode, type Terminal, unconfirmed } from '../command.ts';
import { readCommittedBounds, type WritableLogSources, withWritableLog } from '../writable-log.ts';

export interface GiveUpParts extends WritableLogSources {
  /** Resolves once the audit log contains the entry. */
  readonly audit: (entry: AuditEntry) => Promise<void>;
  readonly author: Author;
  readonly wallClockMs: () => number;
}

export interface GiveUpOrder extends SignerName {
  /** The asset to give up, or null for all pending assets of the signer. */
  readonly only: Pick<MintState, 'contractAddress' | 'projectId' | 'referenceId'> | null;
  /** Shown to the project that requested the asset. */
  readonly reason: string;
}

export interface GiveUpResult {
  /** Assets that were marked as failed. */
  readonly failed: readonly MintStateRecord[];
  /** Assets with a signed transaction, which could still be included in a block. */
  readonly skipped: readonly MintStateRecord[];
}

/**
 * Marks pending assets without a signed transaction as failed, which releases their reference ids. A signed transaction
 * remains valid until its nonce is used, so its asset could be minted twice. The audit entry is written first.
 * @throws Error when a minter repeatedly takes over; UnreachableError
 */
export async function giveUpMints(parts: GiveUpParts, order: GiveUpOrder): Promise<GiveUpResult> {
  const error = `Given up by the operator: ${order.reason}`;
  const isPending = (state: MintStateRecord) => state.status === 'pending' && isSelected(order, state);
  const { written, states } = await changeSignerLog(parts, order, {
    decide: (all) => {
      const changedAt = parts.wallClockMs();
      return all
        .filter((state) => isPending(state) && state.nonce === null)
        .map((state): MintStateRecord => {
          const failed = { status: 'failed', stage: 'settled', reason: null, error } as const;
          return { ...state, ...failed, revision: state.revision + 1, changedAt };
        });
    },
    beforeWrite: async (failed) => {
      for (const entry of toEntries(parts.author, order, failed)) await parts.audit(entry);
    },
  });
  return { failed: written, skipped: states.filter((state) => isPending(state) && state.nonce !== null) };
}

const isSelected = ({ only }: GiveUpOrder, state: MintStateRecord) =>
  only === null ||
  (only.referenceId === state.referenceId &&
    only.projectId === state.projectId &&
    only.contractAddress === toHexText(state.contractAddress));

/** Creates an audit entry per environment that requested an asset. */
function toEntries({ changedBy, requestId }: Author, order: GiveUpOrder, failed: readonly MintStateRecord[]) {
  const environments = new Map<string, MintStateRecord[]>();
  for (const state of failed)
    environments.set(state.environmentId, [...(environments.get(state.environmentId) ?? []), state]);
  const { chain, signer, reason, only } = order;
  return [...environments].map(([environmentId, states]): AuditEntry => {
    const [{ projectId, attemptId }] = states as [MintStateRecord];
    const object = only === null ? signer : attemptId.toString('hex');
    return {
      actor: changedBy,
      action: 'mint.give-up',
      object,
      projectId,
      environmentId,
      address: '',
      requestId,
      detail: { chain, signer, assets: states.length, reason },
    };
  });
}

/** `signer` is `0x` and 40 lower-case hexadecimal digits. */
interface SignerName {
  readonly chain: string;
  readonly signer: string;
}

interface SignerChange {
  /** Returns the states to write, given all pending states. Called again after a minter has taken over. */
  readonly decide: (states: readonly MintStateRecord[]) => readonly MintStateRecord[];
  /** Called before states are written, once per state. */
  readonly beforeWrite: (states: readonly MintStateRecord[]) => Promise<void>;
}

/** Records per transaction, which must complete within its timeout of ten seconds. */
const BATCH_MAX = 500;
/** A fenced minter takes over again after ten seconds; the next attempt writes the remaining states. */
const ATTEMPTS = 5;
const RETRY = 'run the command again';

/**
 * Changes states of a signer. Opening the minter's transactional id fences the minter, so that the states cannot change
 * between the read and the write. The minter recovers automatically.
 * @throws UnreachableError; Error when the records are in several partitions, or a minter repeatedly takes over
 */
function changeSignerLog(sources: WritableLogSources, name: SignerName, change: SignerChange) {
  const { schemas } = sources;
  const target = { name: TOPICS.mintStates.name, schema: mintStateCodec.schema };
  return withWritableLog(sources, target, async ({ log, topic, schemaId, openPublisher }) => {
    const readStates = createReadStates(log, topic, schemas, name);
    // The log is first read before the minter is fenced, because the minter would take over again during a long read.
    await readStates();
    const written: MintStateRecord[] = [];
    const announced = new Set<string>();
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const publisher = await openPublisher(`minter.${name.chain}.${name.signer}`);
      const { states, home } = await readStates();
      const wanted = change.decide(states);
      if (wanted.length === 0 || home === null) return { written, states };
      const added = wanted.filter((state) => !announced.has(toMintStateKey(state)));
      await change.beforeWrite(added);
      for (const state of added) announced.add(toMintStateKey(state));
      if (await write({ publisher, topic, schemaId, partition: home }, wanted, written)) return { written, states };
    }
    throw new Error(`The signer's minter took over ${ATTEMPTS} times. Stop the minter and run the command again.`);
  });
}

/** Adds written states to `written`. @returns false if a minter took over before all states were written */
async function write(
  target: { publisher: AtomicPublisher; topic: string; schemaId: number; partition: number },
  states: readonly MintStateRecord[],
  written: MintStateRecord[],
): Promise<boolean> {
  const { publisher, topic, schemaId, partition } = target;
  for (let from = 0; from < states.length; from += BATCH_MAX) {
    const batch = states.slice(from, from + BATCH_MAX);
    const records = batch.map((state) => ({
      topic,
      partition,
      key: Buffer.from(toMintStateKey(state)),
      headers: {},
      value: frameRecord(schemaId, mintStateCodec.encode(state)),
    }));
    try {
      await publisher.publish(records);
    } catch (fault) {
      if (isTakenOver(fault)) return false;
      unconfirmed('the change', RETRY)(fault instanceof Error ? fault : new Error(String(fault)));
    }
    for (const state of batch) written.push(state);
  }
  return true;
}

/**
 * Creates a function that reads the pending states of a signer, and retains only these. Each call continues up to the
 * current end of the log, once all open transactions have ended. It returns the pending states and their partition.
 * @throws Error for records in several partitions, whose order is unknown
 */
function createReadStates(log: LogReader, topic: string, { schemaOf }: Schemas, name: SignerName) {
  const decode = createRecordReader({ schemaOf, createReader: mintStateCodec.decoderOf });
  const states = new Map<string, MintStateRecord>();
  const partitions = new Set<number>();
  const offsets = new Map<number, number>();
  return async () => {
    for (const { partition, start, end } of await readCommittedBounds(log, topic)) {
      const from = Math.max(offsets.get(partition) ?? start, start);
      for await (const { value } of log.read({ topic, partition, start: from, end, isWhole: true })) {
        if (value === null) continue;
        const found = await decode(value);
        if (found.kind !== 'record') throw new Error(`a record in ${topic} cannot be read: ${found.reason}`);
        if (toSignerKey(found.record) !== `${name.chain}:${name.signer}`) continue;
        partitions.add(partition);
        const key = toMintStateKey(found.record);
        if (found.record.status === 'pending') states.set(key, { ...found.record });
        else states.delete(key);
      }
      offsets.set(partition, Math.max(from, end));
    }
    const [home = null, ...others] = partitions;
    if (others.length === 0) return { states: [...states.values()], home };
    throw new Error(`records of the signer are in several partitions of ${topic}: no changes were written`);
  };
}

export interface GiveUpContext extends Omit<GiveUpParts, 'audit' | 'wallClockMs'> {
  readonly openProducer: (topic: string) => Promise<Producer>;
  /** @throws Error when the mint request does not exist */
  readonly find: (name: MintName) => Promise<MintState>;
}

export interface MintName {
  readonly collection: MintCollection;
  /** Null selects the project that linked the collection. */
  readonly projectId: string | null;
  readonly referenceId: string;
}

export type GiveUpTarget =
  | ({ readonly kind: 'asset' } & MintName)
  | { readonly kind: 'signer'; readonly chain: string; readonly signer: string };

const REASON_MAX = 300;

/** @throws InvalidArgumentError */
export function parseReason(text: string): string {
  const reason = text.trim();
  if (reason === '' || reason.length > REASON_MAX)
    throw new InvalidArgumentError(`Expected a reason of at most ${REASON_MAX} characters.`);
  return reason;
}

/** @throws InvalidArgumentError */
export function parseSigner(text: string): string {
  const signer = parseAddress(text);
  if (signer === null) throw new InvalidArgumentError(`Expected ${ADDRESS_EXPECTED}.`);
  return signer;
}

/** Gives up one asset, or all assets of a signer, after confirmation. */
export async function giveUp(
  context: GiveUpContext,
  { target, reason, ...options }: { target: GiveUpTarget; reason: string; yes?: boolean | undefined },
  terminal: Terminal,
): Promise<ExitCode> {
  const order = await toOrder(context, target, reason);
  await confirm(`${describeEffect(order)} This cannot be undone.`, options, terminal);
  const result = await withAudit(context, (audit) => giveUpMints({ ...context, audit, wallClockMs: Date.now }, order));
  for (const line of toLines(result)) terminal.result(line);
  if (result.failed.length + result.skipped.length > 0) return result.skipped.length === 0 ? EXIT.ok : EXIT.failed;
  throw new Error(order.only === null ? 'the signer has no pending assets' : NOT_ACCEPTED);
}

const NOT_ACCEPTED =
  'the minter has not accepted the asset yet, or has just completed it: check the asset with mints show';

async function toOrder(context: GiveUpContext, target: GiveUpTarget, reason: string): Promise<GiveUpOrder> {
  if (target.kind === 'signer') return { chain: target.chain, signer: target.signer, only: null, reason };
  const { chain, contractAddress, projectId, referenceId, signer, status } = await context.find(target);
  if (status !== 'pending') throw new Error(`the asset has ${status}: only pending assets can be given up`);
  return { chain, signer, only: { contractAddress, projectId, referenceId }, reason };
}

const describeEffect = ({ only, chain, signer }: GiveUpOrder) =>
  only === null
    ? `This marks all pending assets of ${signer} on ${chain} that have no signed transaction as failed.`
    : `This marks ${only.referenceId} of ${only.contractAddress} as failed, and releases its reference id.`;

function toLines({ failed, skipped }: GiveUpResult): readonly string[] {
  const name = ({ contractAddress, referenceId }: GiveUpResult['failed'][number]) =>
    `${referenceId} of 0x${contractAddress.toString('hex')}`;
  const reason = 'its signed transaction may still be included in a block, nonce';
  return [
    ...failed.map((state) => `given up: ${name(state)}`),
    ...skipped.map((state) => `skipped: ${name(state)}: ${reason} ${state.nonce}`),
  ];
}

async function withAudit<T>(
  { openProducer, schemas, topicPrefix }: GiveUpContext,
  work: (audit: (entry: AuditEntry) => Promise<void>) => Promise<T>,
): Promise<T> {
  const topic = topicPrefix + TOPICS.audit.name;
  const producer = await openProducer(topic);
  try {
    const schemaId = await awaitWritable({ producer, schemas }, topic, auditEntryCodec.schema);
    const audit = createAuditLog({ schemaId, send: (record) => producer.sendForOffset({ topic, ...record }) });
    return await work((entry) => audit.append(entry));
  } finally {
    await producer.close();
  }
}
