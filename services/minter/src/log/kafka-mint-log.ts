import {
  createRecordReader,
  frameRecord,
  type MintStateRecord,
  type MintTransactionRecord,
  mintStateCodec,
  mintTransactionCodec,
  type RecordCodec,
  type SchemaSource,
  toMintStateKey,
  toMintTransactionKey,
  toSignerKey,
} from '@playline/contracts';
import type { Tracing } from '@playline/runtime';
import {
  type AtomicPublisher,
  awaitStableBounds,
  type LogBounds,
  type LogReader,
  type TransactionRecord,
  toPartition,
  toTraceHeaders,
} from '@playline/stream';
import { DigestTable } from '../lane/digest-table.ts';
import { toAttemptKey } from '../lane/failed-attempts.ts';
import { toReferenceKey } from '../lane/mint-ledger.ts';
import type { LaneChange, LaneWriter, MintLog, OtherSigners, ReferenceName, SignerLane } from '../ports.ts';

export interface MintLogParts {
  readonly reader: LogReader;
  /** Opens a publisher and fences earlier publishers with the same transactional id. */
  openPublisher(name: string): Promise<AtomicPublisher>;
  readonly states: MintTopic;
  readonly transactions: MintTopic;
  readonly schemaOf: SchemaSource;
  readonly tracing: Pick<Tracing, 'find'> | null;
}

interface TopicLogs {
  readonly states: TopicLog<MintStateRecord>;
  readonly transactions: TopicLog<MintTransactionRecord>;
}

/** The partitions to which a writer writes. */
type WriterPartitions = Readonly<Record<keyof TopicLogs, number>>;

export function createMintLog(parts: MintLogParts): MintLog {
  const [holdings, pending] = [new SignerHoldings(), new PendingSigners()];
  const states = createTopicLog({
    ...parts,
    topic: parts.states,
    codec: mintStateCodec,
    headersOf: (state) => toTraceHeaders(parts.tracing, state),
    onRecord: (state) => {
      holdings.apply(state);
      pending.apply(state);
    },
  });
  const transactions = createTopicLog({ ...parts, topic: parts.transactions, codec: mintTransactionCodec });
  return {
    openWriter: async (lane) => {
      // Guarantee: earlier publishers are fenced before the log ends are read.
      const publisher = await parts.openPublisher(`minter.${lane.chain}.0x${lane.signer.toString('hex')}`);
      try {
        return await toWriter(publisher, { states, transactions }, lane);
      } catch (fault) {
        await publisher.close();
        throw fault;
      }
    },
    lanesOf: async ({ partition, partitions }) => {
      await states.catchUp({ isWhole: true });
      return pending.lanes.filter((lane) => toPartition(Buffer.from(toSignerKey(lane)), partitions) === partition);
    },
    others: {
      sync: async (options) => {
        await states.catchUp(options);
      },
      isHeldByOther: (lane, request) => holdings.isHeldByOther(lane, request),
      isHeldByLane: (lane, request) => holdings.isHeldByLane(lane, request),
      isPending: (lane, attempt) => holdings.isPending(lane, attempt),
    },
  };
}

/** Creates a writer that writes to the partitions with the signer's earlier records. */
async function toWriter(
  publisher: AtomicPublisher,
  { states, transactions }: TopicLogs,
  lane: SignerLane,
): Promise<LaneWriter> {
  const stateSection = states.sectionOf(lane, await states.catchUp({ isWhole: true }));
  const transactionSection = transactions.sectionOf(lane, await transactions.catchUp({ isWhole: true }));
  const targets: WriterPartitions = { states: stateSection.partition, transactions: transactionSection.partition };
  return {
    readTransactions: () => readLast(transactions.read(lane, transactionSection)),
    readStates: async function* () {
      const section = (await states.catchUp({ isWhole: true })).find(({ partition }) => partition === targets.states);
      if (section === undefined) throw new Error(`${states.name} no longer has partition ${targets.states}`);
      for await (const { record } of states.read(lane, section)) if (record !== null) yield record;
    },
    append: async (change) => publisher.publish(await toRecords({ states, transactions }, targets, change)),
    close: () => publisher.close(),
  };
}

/** Reads the last record per key, because compaction may not have run yet. Omits tombstones. */
async function readLast<R>(records: AsyncIterable<KeyedRecord<R>>): Promise<R[]> {
  const last = new Map<string, R>();
  for await (const { key, record } of records) {
    last.delete(key);
    if (record !== null) last.set(key, record);
  }
  return [...last.values()];
}

async function toRecords(
  { states, transactions }: TopicLogs,
  targets: WriterPartitions,
  change: LaneChange,
): Promise<TransactionRecord[]> {
  const published: TransactionRecord[] = [];
  for (const state of change.states)
    published.push(await states.toPublished(targets.states, toMintStateKey(state), state));
  for (const record of change.transactions)
    published.push(await transactions.toPublished(targets.transactions, toMintTransactionKey(record), record));
  for (const record of change.forgotten)
    published.push(await transactions.toPublished(targets.transactions, toMintTransactionKey(record), null));
  return published;
}

/** Tracks the signers with pending assets while states are read. Stores only keys. */
class PendingSigners {
  readonly #pending = new Map<string, { readonly lane: SignerLane; readonly states: Set<string> }>();

  apply(state: MintStateRecord): void {
    const key = toSignerKey(state);
    if (state.status === 'pending') {
      const found = this.#pending.get(key);
      // Copies the signer, because the Buffer may be a slice of a larger Buffer.
      const entry = found ?? { lane: { chain: state.chain, signer: Buffer.from(state.signer) }, states: new Set() };
      entry.states.add(toMintStateKey(state));
      this.#pending.set(key, entry);
      return;
    }
    const found = this.#pending.get(key);
    found?.states.delete(toMintStateKey(state));
    if (found?.states.size === 0) this.#pending.delete(key);
  }

  /** In the order in which the signers first appeared. */
  get lanes(): readonly SignerLane[] {
    return [...this.#pending.values()].map(({ lane }) => lane);
  }
}

/** Tracks which signers have used which reference ids while states are read. */
export class SignerHoldings implements Pick<OtherSigners, 'isHeldByOther' | 'isHeldByLane' | 'isPending'> {
  /** Attempts by signer, by chain and reference id, for pending assets. */
  readonly #pending = new Map<string, Map<string, string>>();
  /** The signer's number by chain and reference id, for minted assets. */
  readonly #minted = new DigestTable();
  readonly #numbers = new Map<string, number>();

  apply(state: MintStateRecord): void {
    const key = `${state.chain}:${toReferenceKey(state)}`;
    const [signer, attempt] = [state.signer.toString('hex'), toAttemptKey(state)];
    const pending = this.#pending.get(key) ?? new Map<string, string>();
    if (state.status === 'pending') pending.set(signer, attempt);
    else if (pending.get(signer) === attempt) pending.delete(signer);
    if (state.status === 'succeeded') this.#minted.set(key, this.#numberOf(signer));
    if (pending.size === 0) this.#pending.delete(key);
    else this.#pending.set(key, pending);
  }

  #numberOf(signer: string): number {
    const number = this.#numbers.get(signer) ?? this.#numbers.size + 1;
    this.#numbers.set(signer, number);
    return number;
  }

  isHeldByOther({ chain, signer }: SignerLane, request: ReferenceName): boolean {
    const key = `${chain}:${toReferenceKey(request)}`;
    const signerKey = signer.toString('hex');
    const minted = this.#minted.get(key);
    if (minted !== 0 && minted !== this.#numbers.get(signerKey)) return true;
    const pending = this.#pending.get(key);
    return pending !== undefined && (pending.size > 1 || !pending.has(signerKey));
  }

  isHeldByLane({ chain, signer }: SignerLane, request: ReferenceName): boolean {
    const key = `${chain}:${toReferenceKey(request)}`;
    const signerKey = signer.toString('hex');
    const minted = this.#minted.get(key);
    return (minted !== 0 && minted === this.#numbers.get(signerKey)) || this.#pending.get(key)?.has(signerKey) === true;
  }

  isPending({ chain, signer }: SignerLane, attempt: ReferenceName & Pick<MintStateRecord, 'attemptId'>): boolean {
    const pending = this.#pending.get(`${chain}:${toReferenceKey(attempt)}`);
    return pending?.get(signer.toString('hex')) === toAttemptKey(attempt);
  }
}

interface MintTopic {
  readonly name: string;
  schemaId(): Promise<number>;
}

/** A record with its key, or a tombstone. */
interface KeyedRecord<R> {
  readonly key: string;
  readonly record: R | null;
}

interface TopicLog<R> {
  readonly name: string;
  /** Reads new records, each once. @param options.isWhole whether to wait for all existing records */
  catchUp(options: { readonly isWhole: boolean }): Promise<readonly LogBounds[]>;
  /** Returns the partition with the signer's records, or the key's partition. @throws Error if there are several */
  sectionOf(lane: SignerLane, bounds: readonly LogBounds[]): LogBounds;
  /** Reads a signer's records in log order. */
  read(lane: SignerLane, section: LogBounds): AsyncGenerator<KeyedRecord<R>>;
  toPublished(partition: number, key: string, record: R | null): Promise<TransactionRecord>;
}

interface TopicLogParts<R> {
  readonly reader: LogReader;
  readonly schemaOf: SchemaSource;
  readonly topic: MintTopic;
  readonly codec: RecordCodec<R>;
  readonly headersOf?: (record: R) => TransactionRecord['headers'];
  /** Called once per record, in partition order. */
  readonly onRecord?: (record: R) => void;
}

function createTopicLog<R extends SignerLane>(parts: TopicLogParts<R>): TopicLog<R> {
  const { reader, topic, codec, headersOf, onRecord } = parts;
  const readSection = createReadSection(parts);
  /** Partitions with records, by signer key. */
  const partitionsOf = new Map<string, Set<number>>();
  const partitions = new Map<number, number>();
  const readNew = async (bounds: readonly LogBounds[]): Promise<readonly LogBounds[]> => {
    for (const { partition, start, end } of bounds) {
      const from = Math.max(partitions.get(partition) ?? start, start);
      for await (const { record, offset } of readSection({ partition, start: from, end })) {
        partitions.set(partition, offset + 1);
        if (record === null) continue;
        const key = toSignerKey(record);
        partitionsOf.set(key, (partitionsOf.get(key) ?? new Set()).add(partition));
        onRecord?.(record);
      }
      partitions.set(partition, Math.max(from, end));
    }
    return bounds;
  };
  const catchUp = createSharedRuns(async (isWhole) =>
    readNew(await (isWhole ? readStableBounds(reader, topic.name) : reader.bounds(topic.name))),
  );
  return {
    name: topic.name,
    catchUp,
    sectionOf: (lane, bounds) => {
      const partition = choosePartition(topic.name, lane, partitionsOf.get(toSignerKey(lane)) ?? bounds.length);
      const section = bounds.find((each) => each.partition === partition);
      if (section === undefined) throw new Error(`${topic.name} no longer has partition ${partition}`);
      return section;
    },
    read: async function* (lane, section) {
      for await (const keyed of readSection(section))
        if (keyed.record === null || toSignerKey(keyed.record) === toSignerKey(lane)) yield keyed;
    },
    toPublished: async (partition, key, record) => ({
      topic: topic.name,
      partition,
      key: Buffer.from(key),
      headers: (record !== null && headersOf?.(record)) || {},
      value: record === null ? null : frameRecord(await topic.schemaId(), codec.encode(record)),
    }),
  };
}

/** Runs calls one after another. Waiting calls share the next run. */
function createSharedRuns(work: (isWhole: boolean) => Promise<readonly LogBounds[]>): TopicLog<SignerLane>['catchUp'] {
  let previous: Promise<unknown> = Promise.resolve();
  /** Runs that have not started yet, by `isWhole`. */
  const next = new Map<boolean, Promise<readonly LogBounds[]>>();
  return ({ isWhole }) => {
    const joined = next.get(isWhole);
    if (joined !== undefined) return joined;
    const run = previous
      .catch(() => {})
      .then(async () => {
        await new Promise((resolve) => setImmediate(resolve));
        next.delete(isWhole);
        return work(isWhole);
      });
    next.set(isWhole, run);
    previous = run;
    return run;
  };
}

/** @param found partitions with the signer's records, or the partition count if there are none */
function choosePartition(topic: string, lane: SignerLane, found: ReadonlySet<number> | number): number {
  const key = toSignerKey(lane);
  if (typeof found === 'number') return toPartition(Buffer.from(key), found);
  const partitions = [...found].sort((one, other) => one - other);
  if (partitions.length === 1) return partitions[0]!;
  throw new Error(
    `Records of ${key} are in several partitions of ${topic} (${partitions.join(', ')}), so their order is unknown. ` +
      'Nothing is signed for this signer. Copy topics partition by partition.',
  );
}

function createReadSection<R>({ reader, schemaOf, topic, codec }: TopicLogParts<R>) {
  const readValue = createRecordReader({ schemaOf, createReader: codec.decoderOf });
  const decode = async (value: Buffer): Promise<R> => {
    const read = await readValue(value);
    // Skipping the record would lose the state or transaction that it contains.
    if (read.kind === 'unreadable') throw new Error(`a record of ${topic.name} cannot be read: ${read.reason}`);
    // Copies the record, because an instance of the codec's class does not equal plain objects in comparisons.
    return { ...read.record };
  };
  /** @throws Error if the log returns fewer records than expected */
  return async function* (section: LogBounds): AsyncGenerator<KeyedRecord<R> & { readonly offset: number }> {
    for await (const { key, value, offset } of reader.read({ topic: topic.name, ...section, isWhole: true })) {
      const record = value === null ? null : await decode(value);
      yield { key: key?.toString() ?? '', record, offset: Number(offset) };
    }
  };
}

/** Waits for open transactions, because another signer's open transaction hides later records in the partition. */
async function readStableBounds(reader: LogReader, topic: string): Promise<readonly LogBounds[]> {
  const bounds = await awaitStableBounds(reader, topic);
  if (bounds.length === 0) throw new Error(`there is no topic ${topic}`);
  return bounds;
}
