import { createRecordReader, frameRecord, type RecordCodec, type SchemaSource, toSignerKey } from '@playline/contracts';
import { awaitDecided, type LogBounds, type LogReader, type PlacedRecord, toPartition } from '@playline/stream';
import type { SignerLane } from '../ports.ts';

/** Name of a topic on the broker, and the id of its schema. */
export interface MintTopic {
  readonly name: string;
  schemaId(): Promise<number>;
}

/** A record of the topic; a tombstone has no value. */
export interface Kept<R> {
  readonly key: string;
  readonly record: R | null;
}

/** A topic with records of signers, followed as it grows. */
export interface TopicLog<R> {
  readonly name: string;
  /**
   * Reads on from the last position, each record once.
   * @param options.isWhole waits for all records that exist at the call; otherwise reads only what is available now
   * @returns the ends of the topic
   */
  follow(options: { readonly isWhole: boolean }): Promise<readonly LogBounds[]>;
  /**
   * The partition that has all records of a signer, as far as the topic was followed. Only a signer without records
   * gets the partition of its key, which changes when an operator adds partitions.
   * @throws Error when several partitions have some: their order is unknown
   */
  homeOf(lane: SignerLane, bounds: readonly LogBounds[]): LogBounds;
  /** Records of a signer in a partition, in order. */
  read(lane: SignerLane, home: LogBounds): AsyncGenerator<Kept<R>>;
  toPlaced(partition: number, key: string, record: R | null): Promise<PlacedRecord>;
}

export interface TopicLogParts<R> {
  readonly reader: LogReader;
  readonly schemaOf: SchemaSource;
  readonly topic: MintTopic;
  readonly codec: RecordCodec<R>;
  /** Called with each record once, in the order of its partition. */
  readonly onRecord?: (record: R) => void;
}

export function createTopicLog<R extends SignerLane>(parts: TopicLogParts<R>): TopicLog<R> {
  const { reader, topic, codec, onRecord } = parts;
  const readSection = createReadSection(parts);
  /** By the key of the signer. */
  const partitionsOf = new Map<string, Set<number>>();
  const places = new Map<number, number>();
  const readOn = async (bounds: readonly LogBounds[]): Promise<readonly LogBounds[]> => {
    for (const { partition, start, end } of bounds) {
      const from = Math.max(places.get(partition) ?? start, start);
      for await (const { record, offset } of readSection({ partition, start: from, end })) {
        places.set(partition, offset + 1);
        if (record === null) continue;
        const key = toSignerKey(record);
        partitionsOf.set(key, (partitionsOf.get(key) ?? new Set()).add(partition));
        onRecord?.(record);
      }
      places.set(partition, Math.max(from, end));
    }
    return bounds;
  };
  const follow = createTurns(async (isWhole) =>
    readOn(await (isWhole ? decidedBounds(reader, topic.name) : reader.bounds(topic.name))),
  );
  return {
    name: topic.name,
    follow,
    homeOf: (lane, bounds) => {
      const partition = chooseHome(topic.name, lane, partitionsOf.get(toSignerKey(lane)) ?? bounds.length);
      const home = bounds.find((each) => each.partition === partition);
      if (home === undefined) throw new Error(`${topic.name} has no partition ${partition} any more`);
      return home;
    },
    read: async function* (lane, home) {
      for await (const kept of readSection(home))
        if (kept.record === null || toSignerKey(kept.record) === toSignerKey(lane)) yield kept;
    },
    toPlaced: async (partition, key, record) => ({
      topic: topic.name,
      partition,
      key: Buffer.from(key),
      headers: {},
      value: record === null ? null : frameRecord(await topic.schemaId(), codec.encode(record)),
    }),
  };
}

/**
 * Calls run one after the other: one already under way may have asked for the ends before this call. Calls that wait for
 * the same turn share it.
 */
function createTurns(work: (isWhole: boolean) => Promise<readonly LogBounds[]>): TopicLog<SignerLane>['follow'] {
  let following: Promise<unknown> = Promise.resolve();
  /** Calls that have not begun yet, by `isWhole`. */
  const next = new Map<boolean, Promise<readonly LogBounds[]>>();
  return ({ isWhole }) => {
    const joined = next.get(isWhole);
    if (joined !== undefined) return joined;
    const turn = following
      .catch(() => {})
      .then(async () => {
        await new Promise((resolve) => setImmediate(resolve));
        next.delete(isWhole);
        return work(isWhole);
      });
    next.set(isWhole, turn);
    following = turn;
    return turn;
  };
}

/** @param found partitions with records of the signer; if there are none, the number of partitions */
function chooseHome(topic: string, lane: SignerLane, found: ReadonlySet<number> | number): number {
  const key = toSignerKey(lane);
  if (typeof found === 'number') return toPartition(Buffer.from(key), found);
  const partitions = [...found].sort((one, other) => one - other);
  if (partitions.length === 1) return partitions[0]!;
  throw new Error(
    `Records of ${key} stand in several partitions of ${topic} (${partitions.join(', ')}), so nobody can tell their order. ` +
      'Nothing is signed for this signer.',
  );
}

function createReadSection<R>({ reader, schemaOf, topic, codec }: TopicLogParts<R>) {
  const readValue = createRecordReader({ schemaOf, createReader: codec.decoderOf });
  const decode = async (value: Buffer): Promise<R> => {
    const read = await readValue(value);
    // Skipping it would act as if that decision had never been made.
    if (read.kind === 'unreadable') throw new Error(`a record of ${topic.name} cannot be read: ${read.reason}`);
    // A plain object: an instance of the codec's class would not equal a record from elsewhere.
    return { ...read.record };
  };
  /** Records of offsets from `start` to before `end`. @throws Error when the log returns fewer */
  return async function* (section: LogBounds): AsyncGenerator<Kept<R> & { readonly offset: number }> {
    for await (const { key, value, offset } of reader.read({ topic: topic.name, ...section, isWhole: true })) {
      const record = value === null ? null : await decode(value);
      yield { key: key?.toString() ?? '', record, offset: Number(offset) };
    }
  };
}

/** Readers see only records before the first open transaction, and another signer may have one in this partition. */
async function decidedBounds(reader: LogReader, topic: string): Promise<readonly LogBounds[]> {
  const bounds = await awaitDecided(reader, topic);
  if (bounds.length === 0) throw new Error(`there is no topic ${topic}`);
  return bounds;
}
