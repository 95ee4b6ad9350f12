import { setTimeout as delay } from 'node:timers/promises';
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
import { type AtomicPublisher, type LogBounds, type LogReader, type PlacedRecord, toPartition } from '@playline/stream';
import { SignerHoldings } from '../lane/signer-holdings.ts';
import type { LaneChange, LaneRecords, LaneWriter, MintLog, OtherSigners, SignerLane } from '../ports.ts';

/** A topic as it is called on the broker, and the id of its schema. */
export interface MintTopic {
  readonly name: string;
  schemaId(): Promise<number>;
}

export interface MintLogParts {
  readonly reader: LogReader;
  /** Opens the publisher of a name, and ends whoever had it. */
  openPublisher(name: string): Promise<AtomicPublisher>;
  readonly states: MintTopic;
  readonly transactions: MintTopic;
  readonly schemaOf: SchemaSource;
}

/** An open transaction of another signer holds readers back for ten seconds at most, and brokers look every ten. */
const DECIDED_MAX_MS = 40_000;
const DECIDED_LOOK_MS = 20;

/** A value of one kind; a tombstone has none. */
interface Kept<R> {
  readonly key: string;
  readonly record: R | null;
}

/** The logs of states and transactions on brokers. */
export function createMintLog(parts: MintLogParts): MintLog {
  const states = createTopicLog(parts, parts.states, mintStateCodec);
  const transactions = createTopicLog(parts, parts.transactions, mintTransactionCodec);
  return {
    openWriter: async (lane) => {
      // The guarantee: nothing of whoever had the name can come behind the ends that are asked for from here on.
      const publisher = await parts.openPublisher(`minter.${lane.chain}.0x${lane.signer.toString('hex')}`);
      try {
        const standing: LaneRecords = {
          states: (await states.read(lane)).flatMap(({ record }) => record ?? []),
          transactions: withoutForgotten(await transactions.read(lane)),
        };
        return toWriter({
          publisher,
          standing,
          toRecords: (change) => toRecords(lane, change, { states, transactions }),
        });
      } catch (fault) {
        await publisher.close();
        throw fault;
      }
    },
    lanesOf: async ({ partition, partitions }) => {
      const last = new Map((await states.read(null)).map(({ key, record }) => [key, record]));
      const pending = [...last.values()].flatMap((record) => (record?.status === 'pending' ? record : []));
      const lanes = new Map(pending.map(({ chain, signer }) => [toSignerKey({ chain, signer }), { chain, signer }]));
      return [...lanes].flatMap(([key, lane]) => (toPartition(Buffer.from(key), partitions) === partition ? lane : []));
    },
    others: createOthers(parts.reader, states),
  };
}

/** Follows the states of all signers, each record once. */
function createOthers(reader: LogReader, states: TopicLog<MintStateRecord>): OtherSigners {
  const holdings = new SignerHoldings();
  const places = new Map<number, number>();
  let looking: Promise<void> = Promise.resolve();
  const follow = async (bounds: readonly LogBounds[]) => {
    for (const { partition, start, end } of bounds) {
      const from = Math.max(places.get(partition) ?? start, start);
      if (from >= end) continue;
      const kept = await states.readSection({ partition, start: from, end });
      // Whole sections only: one that broke off is read again, and says the same.
      for (const { record } of kept) if (record !== null) holdings.apply(record);
      places.set(partition, end);
    }
  };
  return {
    // One after the other: a look that was under way may have asked for the ends before this call.
    look: ({ isWhole }) => {
      const bounds = () => (isWhole ? readDecided(reader, states.name) : reader.bounds(states.name));
      looking = looking.catch(() => {}).then(async () => follow(await bounds()));
      return looking;
    },
    hold: (lane, request) => holdings.hold(lane, request),
  };
}

interface WriterParts {
  readonly publisher: AtomicPublisher;
  readonly standing: LaneRecords;
  readonly toRecords: (change: LaneChange) => Promise<PlacedRecord[]>;
}

function toWriter({ publisher, standing, toRecords }: WriterParts): LaneWriter {
  return {
    standing,
    append: async (change) => publisher.publish(await toRecords(change)),
    close: () => publisher.close(),
  };
}

/** Compaction takes a tombstone and what it is about at its own pace: whatever stands in front of one is gone. */
function withoutForgotten(kept: readonly Kept<MintTransactionRecord>[]): MintTransactionRecord[] {
  const last = new Map<string, MintTransactionRecord>();
  for (const { key, record } of kept) {
    last.delete(key);
    if (record !== null) last.set(key, record);
  }
  return [...last.values()];
}

interface TopicLog<R> {
  readonly name: string;
  /** Records of offsets from `start` to before `end`. @throws Error when the log shows less */
  readSection(section: { partition: number; start: number; end: number }): Promise<Kept<R>[]>;
  /** Records of a signer, or of all of them, to the end of what stands now. */
  read(lane: SignerLane | null): Promise<Kept<R>[]>;
  toPlaced(lane: SignerLane, key: string, record: R | null): Promise<PlacedRecord>;
}

function createTopicLog<R extends SignerLane>(
  { reader, schemaOf }: Pick<MintLogParts, 'reader' | 'schemaOf'>,
  topic: MintTopic,
  codec: RecordCodec<R>,
): TopicLog<R> {
  const readValue = createRecordReader({ schemaOf, createReader: codec.decoderOf });
  const decode = async (value: Buffer): Promise<R> => {
    const read = await readValue(value);
    // Passed over, it would be as if it had never been decided.
    if (read.kind === 'unreadable') throw new Error(`a record of ${topic.name} cannot be read: ${read.reason}`);
    // A plain object: the class of the codec would not equal a record from elsewhere.
    return { ...read.record };
  };
  let partitions = 0;
  const readSection: TopicLog<R>['readSection'] = async (section) => {
    const kept: Kept<R>[] = [];
    for await (const { key, value } of reader.read({ topic: topic.name, ...section, isWhole: true }))
      kept.push({ key: key?.toString() ?? '', record: value === null ? null : await decode(value) });
    return kept;
  };
  return {
    name: topic.name,
    readSection,
    read: async (lane) => {
      const bounds = await readDecided(reader, topic.name);
      partitions = bounds.length;
      const own = lane === null ? null : toPartition(Buffer.from(toSignerKey(lane)), partitions);
      const kept: Kept<R>[] = [];
      for (const { partition, start, end } of bounds)
        if (own === null || partition === own) kept.push(...(await readSection({ partition, start, end })));
      const isOurs = (record: R | null) =>
        lane === null || record === null || (record.chain === lane.chain && record.signer.equals(lane.signer));
      return kept.filter(({ record }) => isOurs(record));
    },
    toPlaced: async (lane, key, record) => ({
      ...{ topic: topic.name, partition: toPartition(Buffer.from(toSignerKey(lane)), partitions) },
      key: Buffer.from(key),
      value: record === null ? null : frameRecord(await topic.schemaId(), codec.encode(record)),
      headers: {},
    }),
  };
}

/**
 * Where a topic ends now, once all of it is decided. Readers are shown what stands in front of the first transaction that is
 * open, and another signer may have one in this partition: the records that are looked for may stand behind it.
 */
async function readDecided(reader: LogReader, topic: string) {
  const ends = await reader.bounds(topic, { undecided: true });
  if (ends.length === 0) throw new Error(`there is no topic ${topic}`);
  const until = performance.now() + DECIDED_MAX_MS;
  for (;;) {
    const decided = await reader.bounds(topic);
    if (ends.every(({ partition, end }) => (decided[partition]?.end ?? -1) >= end)) return ends;
    if (performance.now() > until) throw new Error(`${topic} has a transaction that does not end`);
    await delay(DECIDED_LOOK_MS);
  }
}

interface TopicLogs {
  readonly states: TopicLog<MintStateRecord>;
  readonly transactions: TopicLog<MintTransactionRecord>;
}

async function toRecords(
  lane: SignerLane,
  change: LaneChange,
  { states, transactions }: TopicLogs,
): Promise<PlacedRecord[]> {
  const placed: PlacedRecord[] = [];
  for (const state of change.states) placed.push(await states.toPlaced(lane, toMintStateKey(state), state));
  for (const record of change.transactions)
    placed.push(await transactions.toPlaced(lane, toMintTransactionKey(record), record));
  for (const record of change.forgotten)
    placed.push(await transactions.toPlaced(lane, toMintTransactionKey(record), null));
  return placed;
}
