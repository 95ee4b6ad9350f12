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
import { awaitWritable, type Schemas } from '../await-schema.ts';
import { EXIT, type ExitCode, isConfirmed, type Terminal, unconfirmed } from '../command.ts';
import { readCommittedBounds, type WritableLogSources, withWritableLog } from '../writable-log.ts';

export interface GiveUpParts extends WritableLogSources {
  /** Resolves when the entry is in the audit log. */
  readonly audit: (entry: AuditEntry) => Promise<void>;
  readonly author: Author;
  readonly wallClockMs: () => number;
}

/** Which assets of a signer to give up. */
export interface GiveUpOrder extends SignerName {
  /** A single asset, as the interface names it; null: all pending ones. */
  readonly only: Pick<MintState, 'contractAddress' | 'projectId' | 'referenceId'> | null;
  /** Shown to people, also to those who requested the assets. */
  readonly reason: string;
}

/** What was done with the pending assets. */
export interface GiveUpResult {
  /** These have failed now. */
  readonly ended: readonly MintStateRecord[];
  /** These have a signed transaction, which may get into a block at any time. */
  readonly carried: readonly MintStateRecord[];
}

/**
 * Fails pending assets, so that their reference ids are free again. An asset with a signed transaction is left alone:
 * the bytes stay valid until a final transaction has spent the nonce, whatever became of the key, and the reference id
 * could get two tokens. For all others the log proves that nothing signed can mint them: the minter writes the nonce
 * into the state together with the signed bytes, and removes it only when the nonce is finally spent.
 * The audit entry is written first.
 * @throws Error when a minter takes over all the time; UnreachableError
 */
export async function giveUpMints(parts: GiveUpParts, order: GiveUpOrder): Promise<GiveUpResult> {
  const error = `Given up by the operator: ${order.reason}`;
  const isPending = (state: MintStateRecord) => state.status === 'pending' && isMeantBy(order, state);
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
    before: async (ended) => {
      for (const entry of toEntries(parts.author, order, ended)) await parts.audit(entry);
    },
  });
  return { ended: written, carried: states.filter((state) => isPending(state) && state.nonce !== null) };
}

const isMeantBy = ({ only }: GiveUpOrder, state: MintStateRecord) =>
  only === null ||
  (only.referenceId === state.referenceId &&
    only.projectId === state.projectId &&
    only.contractAddress === toHexText(state.contractAddress));

/** One entry for each environment that had requested any of the assets. */
function toEntries({ changedBy, requestId }: Author, order: GiveUpOrder, ended: readonly MintStateRecord[]) {
  const environments = new Map<string, MintStateRecord[]>();
  for (const state of ended)
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

/** A signing address on a chain: the chain by name, the address as `0x` and 40 lower-case hexadecimal digits. */
interface SignerName {
  readonly chain: string;
  readonly signer: string;
}

/** A change of a signer's states. */
interface SignerChange {
  /** Decides by the states of all pending assets. Called again after a minter has taken over. */
  readonly decide: (states: readonly MintStateRecord[]) => readonly MintStateRecord[];
  /** Called with what was decided before it is written, with each state once. */
  readonly before: (states: readonly MintStateRecord[]) => Promise<void>;
}

/** The result of a change. */
interface ChangedStates {
  readonly written: readonly MintStateRecord[];
  /** The pending assets when the last change was decided. */
  readonly states: readonly MintStateRecord[];
}

/** Records of one transaction, which then stays far below ten seconds. */
const PIECE = 500;
/**
 * A minter that was fenced waits ten seconds before it takes over again, which is enough for tens of pieces. Each
 * attempt writes at least what it can until then, and the next one continues.
 */
const ATTEMPTS = 5;
const AGAIN = 'running the command again repeats nothing that was done';

/**
 * Changes the states of a signer in the place of its minter: opens the minter's transactional id, which fences it, and
 * reads the log only then. So no decision of the minter can come between the read and the change; afterwards the minter
 * takes over again on its own, and reads what was changed here. If it does so before all is written, it is fenced again.
 * @throws UnreachableError when brokers or registry do not answer; Error when records of the signer are in several
 * partitions, so that their order is unknown, or a minter takes over all the time
 */
function changeSignerLog(sources: WritableLogSources, name: SignerName, change: SignerChange): Promise<ChangedStates> {
  const { schemas } = sources;
  const changed = { name: TOPICS.mintStates.name, schema: mintStateCodec.schema };
  return withWritableLog(sources, changed, async ({ log, topic, schemaId, openPublisher }) => {
    const reading = new StateReading({ log, topic, schemas, name });
    // Read most before fencing the minter: after a long read it would have taken over again.
    await reading.readOn();
    const written: MintStateRecord[] = [];
    const announced = new Set<string>();
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const publisher = await openPublisher(`minter.${name.chain}.${name.signer}`);
      await reading.readOn();
      const { states } = reading;
      const wanted = change.decide(states);
      const { home } = reading;
      if (wanted.length === 0 || home === null) return { written, states };
      const added = wanted.filter((state) => !announced.has(toMintStateKey(state)));
      await change.before(added);
      for (const state of added) announced.add(toMintStateKey(state));
      if (await write({ publisher, topic, schemaId, partition: home }, wanted, written)) return { written, states };
    }
    throw new Error(`A minter of the signer took over ${ATTEMPTS} times. Stop it and run the command again: ${AGAIN}.`);
  });
}

interface Target {
  readonly publisher: AtomicPublisher;
  readonly topic: string;
  readonly schemaId: number;
  readonly partition: number;
}

/** @param written gets what was written. @returns false when a minter has taken over: the rest was not written */
async function write(
  { publisher, topic, schemaId, partition }: Target,
  states: readonly MintStateRecord[],
  written: MintStateRecord[],
): Promise<boolean> {
  for (let from = 0; from < states.length; from += PIECE) {
    const piece = states.slice(from, from + PIECE);
    const records = piece.map((state) => ({
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
      unconfirmed('the change', AGAIN)(fault instanceof Error ? fault : new Error(String(fault)));
    }
    for (const state of piece) written.push(state);
  }
  return true;
}

interface StateReadingParts {
  readonly log: LogReader;
  readonly topic: string;
  readonly schemas: Schemas;
  readonly name: SignerName;
}

/** States of the pending assets of one signer, read on as the topic grows. Millions of others may have been settled. */
class StateReading {
  readonly #parts: StateReadingParts;
  readonly #decode;
  readonly #states = new Map<string, MintStateRecord>();
  readonly #partitions = new Set<number>();
  readonly #places = new Map<number, number>();

  constructor(parts: StateReadingParts) {
    this.#parts = parts;
    const { schemaOf } = parts.schemas;
    this.#decode = createRecordReader({ schemaOf, createReader: mintStateCodec.decoderOf });
  }

  get states(): readonly MintStateRecord[] {
    return [...this.#states.values()];
  }

  /** The partition of the signer's records. @throws Error when there are several: their order is unknown */
  get home(): number | null {
    const [home = null, ...others] = this.#partitions;
    if (others.length === 0) return home;
    throw new Error(`records of the signer are in several partitions of ${this.#parts.topic}: nothing is written`);
  }

  /** Reads to the current end, after all open transactions have ended. */
  async readOn(): Promise<void> {
    const { log, topic, name } = this.#parts;
    const signer = `${name.chain}:${name.signer}`;
    for (const { partition, start, end } of await readCommittedBounds(log, topic)) {
      const from = Math.max(this.#places.get(partition) ?? start, start);
      for await (const { value } of log.read({ topic, partition, start: from, end, isWhole: true })) {
        if (value === null) continue;
        const found = await this.#decode(value);
        if (found.kind !== 'record') throw new Error(`a record of ${topic} cannot be read: ${found.reason}`);
        if (toSignerKey(found.record) !== signer) continue;
        this.#partitions.add(partition);
        const key = toMintStateKey(found.record);
        if (found.record.status === 'pending') this.#states.set(key, { ...found.record });
        else this.#states.delete(key);
      }
      this.#places.set(partition, Math.max(from, end));
    }
  }
}

export interface GiveUpContext extends Omit<GiveUpParts, 'audit' | 'wallClockMs'> {
  readonly openProducer: (topic: string) => Promise<Producer>;
  /** @throws Error when there is no such request */
  readonly find: (named: MintName) => Promise<MintState>;
}

/** A request by its reference id. */
export interface MintName {
  readonly collection: MintCollection;
  /** Null: the project that has the collection. */
  readonly projectId: string | null;
  readonly referenceId: string;
}

/** What to give up, from the options of the command. */
export type GiveUpTarget =
  | ({ readonly kind: 'asset' } & MintName)
  | { readonly kind: 'signer'; readonly chain: string; readonly signer: string };

/** The reason is shown, as a sentence, to whoever requested the asset. */
const REASON_MAX = 300;

/** @throws InvalidArgumentError */
export function parseReason(text: string): string {
  const reason = text.trim();
  if (reason === '' || reason.length > REASON_MAX)
    throw new InvalidArgumentError(`Expected why, in at most ${REASON_MAX} characters.`);
  return reason;
}

/** @throws InvalidArgumentError */
export function parseSigner(text: string): string {
  const signer = parseAddress(text);
  if (signer === null) throw new InvalidArgumentError(`Expected ${ADDRESS_EXPECTED}.`);
  return signer;
}

interface GiveUpOptions {
  readonly target: GiveUpTarget;
  readonly reason: string;
  readonly yes?: boolean | undefined;
}

/** Gives up one asset or all of a signer after confirmation, and reports the result. */
export async function giveUp(
  context: GiveUpContext,
  { target, reason, ...options }: GiveUpOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  const order = await toOrder(context, target, reason);
  if (!(await isConfirmed(`${toWhat(order)} This cannot be undone.`, options, terminal))) {
    terminal.progress('nothing was done');
    return EXIT.failed;
  }
  const given = await withAudit(context, (audit) => giveUpMints({ ...context, audit, wallClockMs: Date.now }, order));
  for (const line of toLines(given)) terminal.result(line);
  if (given.ended.length + given.carried.length > 0) return given.carried.length === 0 ? EXIT.ok : EXIT.failed;
  throw new Error(order.only === null ? 'the signer has no pending assets' : NOT_TAKEN);
}

const NOT_TAKEN = 'the minter has not taken the asset yet, or has settled it just now: "mints show" shows which';

async function toOrder(context: GiveUpContext, target: GiveUpTarget, reason: string): Promise<GiveUpOrder> {
  if (target.kind === 'signer') return { chain: target.chain, signer: target.signer, only: null, reason };
  const { chain, contractAddress, projectId, referenceId, signer, status } = await context.find(target);
  if (status !== 'pending') throw new Error(`the asset has ${status}: only a pending asset can be given up`);
  return { chain, signer, only: { contractAddress, projectId, referenceId }, reason };
}

const toWhat = ({ only, chain, signer }: GiveUpOrder) =>
  only === null
    ? `All pending assets of ${signer} on ${chain} without a signed transaction will fail.`
    : `${only.referenceId} of ${only.contractAddress} will fail, and its reference id can be used again.`;

function toLines({ ended, carried }: GiveUpResult): readonly string[] {
  const name = ({ contractAddress, referenceId }: GiveUpResult['ended'][number]) =>
    `${referenceId} of 0x${contractAddress.toString('hex')}`;
  return [
    ...ended.map((state) => `given up: ${name(state)}`),
    ...carried.map(
      (state) => `left alone: ${name(state)}: its signed transaction, nonce ${state.nonce}, may still get into a block`,
    ),
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
