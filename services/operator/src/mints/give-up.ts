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
import type { AtomicPublisher, LogReader, Producer } from '@playline/stream';
import { awaitWritable, type Schemas, withOpened } from '../await-store.ts';
import { confirm, EXIT, type ExitCode, type Terminal } from '../command.ts';
import { publishChange, readCommittedBounds, type WritableLogSources, withWritableLog } from '../writable-log.ts';

export interface GiveUpParts extends WritableLogSources {
  /** Resolves once the audit log contains the entry. */
  readonly audit: (entry: AuditEntry) => Promise<void>;
  readonly author: Author;
  readonly wallClockMs: () => number;
}

export interface GiveUpRequest {
  readonly chain: string;
  /** `0x` and 40 lower-case hexadecimal digits. */
  readonly signer: string;
  /** The asset to give up on, or null for all pending assets of the signer. */
  readonly asset: Pick<MintState, 'contractAddress' | 'projectId' | 'referenceId'> | null;
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
 * Opening the minter's transactional id fences the minter, which recovers automatically, so that the states cannot
 * change between the read and the write.
 * @throws Error when the records are in several partitions, or a minter repeatedly takes over; UnreachableError
 */
export function giveUpMints(parts: GiveUpParts, request: GiveUpRequest): Promise<GiveUpResult> {
  const target = { name: TOPICS.mintStates.name, schema: mintStateCodec.schema };
  return withWritableLog(parts, target, async ({ log, topic, schemaId, openPublisher }) => {
    const readPending = createReadPending(log, topic, parts.schemas, request);
    // The log is first read before the minter is fenced, because the minter would take over again during a long read.
    await readPending();
    const failed: MintStateRecord[] = [];
    const audited = new Set<string>();
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const publisher = await openPublisher(`minter.${request.chain}.${request.signer}`);
      const { states, partition } = await readPending();
      const selected = states.filter((state) => isSelected(request, state));
      const skipped = selected.filter(({ nonce }) => nonce !== null);
      const unsigned = selected.filter(({ nonce }) => nonce === null);
      if (unsigned.length === 0 || partition === null) return { failed, skipped };
      const added = unsigned.filter((state) => !audited.has(toMintStateKey(state)));
      for (const entry of toAuditEntries(parts.author, request, added)) await parts.audit(entry);
      for (const state of added) audited.add(toMintStateKey(state));
      const changedAt = parts.wallClockMs();
      const wanted = unsigned.map((state) => toFailed(state, request.reason, changedAt));
      if (await write({ publisher, topic, schemaId, partition }, wanted, failed)) return { failed, skipped };
    }
    throw new Error(`The signer's minter took over ${ATTEMPTS} times. Stop the minter and run the command again.`);
  });
}

function toFailed(state: MintStateRecord, reason: string, changedAt: number): MintStateRecord {
  const failed = { status: 'failed', stage: 'settled', reason: null } as const;
  const error = `Given up by the operator: ${reason}`;
  return { ...state, ...failed, error, revision: state.revision + 1, changedAt };
}

const isSelected = ({ asset }: GiveUpRequest, state: MintStateRecord) =>
  asset === null ||
  (asset.referenceId === state.referenceId &&
    asset.projectId === state.projectId &&
    asset.contractAddress === toHexText(state.contractAddress));

/** Creates an audit entry per environment that requested an asset. */
function toAuditEntries({ changedBy, requestId }: Author, request: GiveUpRequest, failed: readonly MintStateRecord[]) {
  const environments = new Map<string, MintStateRecord[]>();
  for (const state of failed)
    environments.set(state.environmentId, [...(environments.get(state.environmentId) ?? []), state]);
  const { chain, signer, reason, asset } = request;
  return [...environments].map(([environmentId, states]): AuditEntry => {
    const [{ projectId, attemptId }] = states as [MintStateRecord];
    const object = asset === null ? signer : attemptId.toString('hex');
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

/** Records per transaction, which must complete within its timeout of ten seconds. */
const BATCH_MAX = 500;
/** A fenced minter takes over again after ten seconds; the next attempt writes the remaining states. */
const ATTEMPTS = 5;

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
    if (!(await publishChange(publisher, records, 'run the command again'))) return false;
    for (const state of batch) written.push(state);
  }
  return true;
}

/**
 * Creates a function that reads the states of a signer, and keeps only pending states. Each call continues up to the
 * current end of the log, once all open transactions have ended. It returns the pending states and their partition.
 * @throws Error for records in several partitions, whose order is unknown
 */
function createReadPending(log: LogReader, topic: string, { schemaOf }: Schemas, request: GiveUpRequest) {
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
        if (toSignerKey(found.record) !== `${request.chain}:${request.signer}`) continue;
        partitions.add(partition);
        const key = toMintStateKey(found.record);
        if (found.record.status === 'pending') states.set(key, { ...found.record });
        else states.delete(key);
      }
      offsets.set(partition, Math.max(from, end));
    }
    const [partition = null, ...others] = partitions;
    if (others.length === 0) return { states: [...states.values()], partition };
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

/** Gives up on one asset, or on all assets of a signer, after confirmation. */
export async function giveUp(
  context: GiveUpContext,
  { target, reason, ...options }: { target: GiveUpTarget; reason: string; yes?: boolean | undefined },
  terminal: Terminal,
): Promise<ExitCode> {
  const request = await toRequest(context, target, reason);
  await confirm(`${describeEffect(request)} This cannot be undone.`, options, terminal);
  const result = await withAudit(context, (audit) =>
    giveUpMints({ ...context, audit, wallClockMs: Date.now }, request),
  );
  for (const line of toLines(result)) terminal.result(line);
  if (result.failed.length + result.skipped.length > 0) return result.skipped.length === 0 ? EXIT.ok : EXIT.failed;
  throw new Error(request.asset === null ? 'the signer has no pending assets' : NOT_ACCEPTED);
}

const NOT_ACCEPTED =
  'the minter has not accepted the asset yet, or has just completed it: check the asset with mints show';

async function toRequest(context: GiveUpContext, target: GiveUpTarget, reason: string): Promise<GiveUpRequest> {
  if (target.kind === 'signer') return { chain: target.chain, signer: target.signer, asset: null, reason };
  const { chain, contractAddress, projectId, referenceId, signer, status } = await context.find(target);
  if (status !== 'pending') throw new Error(`the asset has ${status}: you can give up only on pending assets`);
  return { chain, signer, asset: { contractAddress, projectId, referenceId }, reason };
}

const describeEffect = ({ asset, chain, signer }: GiveUpRequest) =>
  asset === null
    ? `This marks all pending assets of ${signer} on ${chain} that have no signed transaction as failed.`
    : `This marks ${asset.referenceId} of ${asset.contractAddress} as failed, and releases its reference id.`;

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
  return withOpened(await openProducer(topic), async (producer) => {
    const schemaId = await awaitWritable({ producer, schemas }, topic, auditEntryCodec.schema);
    const audit = createAuditLog({ schemaId, send: (record) => producer.sendForOffset({ topic, ...record }) });
    return work((entry) => audit.append(entry));
  });
}
