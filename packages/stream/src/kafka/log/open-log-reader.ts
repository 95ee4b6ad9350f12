import { setTimeout as delay } from 'node:timers/promises';
import type { LogBounds, LogReader, LogSection } from '../../log.ts';
import type { StreamRecord } from '../../ports.ts';
import { type Admin, type Connection, fetchV17, listOffsetsV7, UserError } from '../broker-client.ts';
import {
  EARLIEST,
  IS_CONTROL,
  IS_LOG_APPEND,
  IS_TRANSACTIONAL,
  isAbortMarker,
  LATEST,
  NO_EPOCH,
  NO_REPLICA,
  NO_SESSION,
  READ_COMMITTED,
  READ_UNCOMMITTED,
} from '../protocol.ts';
import type { BrokerTarget } from '../security.ts';
import { connect, connectToLeader, groupByLeader, type LogReaderOptions, openAdmin } from './open-admin.ts';

/** Short, because the requested records exist already. */
const FETCH_WAIT_MS = 100;
/** About a thousand records of usual size in one answer. A larger record is sent all the same. */
const FETCH_BYTES_MAX = 1024 * 1024;
/** A partition without a leader has a new one within seconds. Thirty times half a second is an outage. */
const ATTEMPTS = 30;
const ATTEMPT_WAIT_MS = 500;
const OFFSET_OUT_OF_RANGE = 1;

class Reader {
  readonly #admin: Admin;
  readonly #decided: (topic: string) => Promise<LogBounds[] | undefined>;
  readonly #uncommitted: (topic: string) => Promise<LogBounds[] | undefined>;

  constructor(options: LogReaderOptions) {
    this.#admin = openAdmin(options);
    const askBounds = createBoundsReader(this.#admin);
    this.#decided = batchCalls((topics) => askBounds(topics, READ_COMMITTED));
    this.#uncommitted = batchCalls((topics) => askBounds(topics, READ_UNCOMMITTED));
  }

  async bounds(topic: string, { readUncommitted = false }: { readUncommitted?: boolean } = {}): Promise<LogBounds[]> {
    return (await (readUncommitted ? this.#uncommitted(topic) : this.#decided(topic))) ?? [];
  }

  async committed(groupId: string, topic: string): Promise<Map<number, number>> {
    const groups = await this.#admin.listConsumerGroupOffsets({ groups: [groupId] });
    const partitions = groups[0]?.topics.find(({ name }) => name === topic)?.partitions ?? [];
    const known = partitions.filter(({ committedOffset }) => committedOffset >= 0n);
    return new Map(known.map(({ partitionIndex, committedOffset }) => [partitionIndex, Number(committedOffset)]));
  }

  async *read(range: LogSection): AsyncGenerator<StreamRecord> {
    let [at, empty] = [range.start, 0];
    while (at < range.end) {
      const { records, next, start } = await this.#fetch({ ...range, start: at });
      for (const record of records) if (record.offset >= at && record.offset < range.end) yield record;
      const reached = start !== null && start > at ? start : (next ?? at);
      empty = reached > at ? 0 : empty + 1;
      if (empty > 0 && range.isWhole !== true) return;
      if (empty === ATTEMPTS) throw new Error(`${range.topic}/${range.partition} was read to ${at} of ${range.end}`);
      // A leader that was just elected shows its records a moment later.
      if (empty > 0) await delay(ATTEMPT_WAIT_MS);
      at = reached;
    }
  }

  /** Fetches from the leader, and retries until it answers. */
  async #fetch(range: LogSection) {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#askRecords(range);
      } catch (error) {
        if (attempt === ATTEMPTS) throw error;
        await delay(ATTEMPT_WAIT_MS);
      }
    }
  }

  async #askRecords({ topic, partition, start }: LogSection) {
    const { topicId, connection } = await connectToLeader(this.#admin, { topic, partition });
    const wanted = {
      partition,
      currentLeaderEpoch: NO_EPOCH,
      fetchOffset: BigInt(start),
      lastFetchedEpoch: NO_EPOCH,
      partitionMaxBytes: FETCH_BYTES_MAX,
    };
    const answer = await sendFetch(connection, { topicId, partitions: [wanted] });
    const given = answer.responses[0]?.partitions[0];
    if (given === undefined) throw new Error(`no answer for ${topic}/${partition}`);
    // Retention has deleted these records meanwhile, so continue at the new start.
    if (given.errorCode === OFFSET_OUT_OF_RANGE) {
      const now = (await this.bounds(topic)).find((each) => each.partition === partition);
      return { records: [], next: null, start: now === undefined || now.start <= start ? null : now.start };
    }
    return { ...readCommitted(topic, given), start: null };
  }

  close(): Promise<void> {
    return this.#admin.close();
  }
}

type FetchTopic = Parameters<typeof fetchV17.api.async>[7][number];
type FetchAnswer = Awaited<ReturnType<typeof fetchV17.api.async>>;

/** Fetches. The client throws for an error code, but the fault has the answer, which is returned. */
export async function sendFetch(
  connection: Connection,
  topic: FetchTopic,
  isolation: number = READ_COMMITTED,
): Promise<FetchAnswer> {
  try {
    return await fetchV17.api.async(
      connection,
      FETCH_WAIT_MS,
      1,
      FETCH_BYTES_MAX,
      isolation,
      NO_SESSION.id,
      NO_SESSION.epoch,
      [topic],
      [],
      '',
    );
  } catch (fault) {
    const answer = (fault as { response?: FetchAnswer }).response;
    const code = answer?.responses?.[0]?.partitions[0]?.errorCode;
    if (answer !== undefined && code === OFFSET_OUT_OF_RANGE) return answer;
    throw fault;
  }
}

/** Opens a reader of the log on real brokers; connects with the first request. */
export function openLogReader(options: LogReaderOptions): LogReader {
  return new Reader(options);
}

/**
 * Creates a question about one name that shares its request with all that are asked in the same turn of the event loop.
 * Copies of many logs are compared at the same moment: each comparison alone would cost the brokers three requests or more.
 * @param ask answers for several names at once; names without an answer are absent
 */
export function batchCalls<T>(
  ask: (names: readonly string[]) => Promise<ReadonlyMap<string, T>>,
): (name: string) => Promise<T | undefined> {
  let next: {
    readonly names: Set<string>;
    readonly answers: Promise<(name: string) => Promise<T | undefined>>;
  } | null = null;
  const send = async (names: Set<string>) => {
    await new Promise((resolve) => setImmediate(resolve));
    next = null;
    try {
      const answers = await ask([...names]);
      return async (name: string) => answers.get(name);
    } catch (fault) {
      if (names.size === 1) throw fault;
      // One topic without a leader must not hide the others.
      return async (name: string) => (await ask([name])).get(name);
    }
  };
  return async (name) => {
    if (next === null) {
      const names = new Set<string>();
      next = { names, answers: send(names) };
    }
    next.names.add(name);
    return (await next.answers)(name);
  };
}

export interface ReadTopicOptions extends BrokerTarget {
  /** Name on the broker. */
  topic: string;
}

/**
 * Reads a small topic, such as a compacted one, from its first record to its present end: one partition after the
 * other, each in the order of the log. Joins no group and commits nothing.
 * @throws Error when the brokers do not answer, or there is no such topic
 */
export async function readTopic({ topic, ...kafka }: ReadTopicOptions): Promise<StreamRecord[]> {
  const reader = openLogReader({ ...kafka, clientId: `read-${topic}` });
  try {
    const partitions = await reader.bounds(topic);
    if (partitions.length === 0) throw new Error(`there is no topic ${topic}`);
    const records: StreamRecord[] = [];
    for (const bounds of partitions) for await (const record of reader.read({ topic, ...bounds })) records.push(record);
    return records;
  } finally {
    await reader.close();
  }
}

/** Two seconds in all: more than an election takes. */
const BOUNDS_ATTEMPTS = 11;
const BOUNDS_ATTEMPT_WAIT_MS = 200;

type Metadata = Awaited<ReturnType<Admin['metadata']>>;
/** By topic and partition. */
type Offsets = Map<string, number>;

interface RequestedPartition {
  readonly partitionIndex: number;
  readonly currentLeaderEpoch: number;
  readonly timestamp: bigint;
}

/** Whether asking again cannot help. One fault of the client may have several below it. */
function isFinal(fault: unknown): boolean {
  if (!(fault instanceof Error)) return false;
  const isOne = (fault as { canRetry?: boolean }).canRetry === false;
  return isOne || isFinal(fault.cause) || (fault instanceof AggregateError && fault.errors.some(isFinal));
}

async function listOffsets(
  admin: Admin,
  { brokers, topics }: Metadata,
  of: { timestamp: bigint; isolation: number },
): Promise<Offsets> {
  const all = [...topics].flatMap(([topic, { partitions }]) =>
    partitions.map(({ leader, leaderEpoch }, partitionIndex) => {
      // A leader refuses an epoch that is not its own: a former one does not tell an old end.
      const partition = { partitionIndex, currentLeaderEpoch: leaderEpoch, timestamp: of.timestamp };
      return { leader, topic, partition };
    }),
  );
  const offsets: Offsets = new Map();
  const askLeader = async ([leader, asked]: [number, Map<string, RequestedPartition[]>]) => {
    const broker = brokers.get(leader);
    if (broker === undefined) throw new Error(`${[...asked.keys()].join(', ')} has a partition without a leader`);
    const questions = [...asked].map(([name, partitions]) => ({ name, partitions }));
    const answer = await listOffsetsV7.api.async(await connect(admin, broker), NO_REPLICA, of.isolation, questions);
    for (const { name, partitions } of answer.topics)
      for (const { partitionIndex, offset } of partitions) offsets.set(`${name}/${partitionIndex}`, Number(offset));
  };
  await Promise.all([...groupByLeader(all)].map(askLeader));
  return offsets;
}

/** @throws Error when an offset is missing: a log of which nothing is known must not look empty */
function toBounds({ topics }: Metadata, starts: Offsets, ends: Offsets): Map<string, LogBounds[]> {
  const boundsOf = (topic: string, partition: number): LogBounds => {
    const name = `${topic}/${partition}`;
    const [start, end] = [starts.get(name), ends.get(name)];
    if (start === undefined || end === undefined) throw new Error(`the leader of ${name} does not tell its bounds`);
    return { partition, start, end };
  };
  return new Map(
    [...topics].map(([topic, { partitions }]) => [topic, [...partitions.keys()].map((at) => boundsOf(topic, at))]),
  );
}

/** How the client names one of the topics of a request that does not exist. */
const isUnknown = (fault: unknown, topic: string) =>
  fault instanceof UserError && fault.message === `Unknown topic ${topic}.`;

/**
 * Creates the question for the bounds of several logs. It costs one request for metadata, and two to each leader: the
 * client's own `listOffsets` asks for the metadata again each time.
 * @returns by topic; topics that do not exist are absent
 */
function createBoundsReader(
  admin: Admin,
): (topics: readonly string[], isolation: number) => Promise<Map<string, LogBounds[]>> {
  /** Topics that were there. A request that names one which is not there fails, so the others are looked for first. */
  const seen = new Set<string>();

  /** @throws Error when the brokers do not answer; the client has asked several times */
  const findExisting = async (topics: readonly string[]): Promise<readonly string[]> => {
    if (topics.every((topic) => seen.has(topic))) return topics;
    const listed = await admin.listTopics();
    for (const topic of topics) {
      if (listed.includes(topic)) seen.add(topic);
      else seen.delete(topic);
    }
    return topics.filter((topic) => seen.has(topic));
  };

  const ask = async (topics: readonly string[], isolation: number): Promise<Map<string, LogBounds[]>> => {
    // Repeated below and not by the client, which would also insist on a topic that was removed.
    const metadata = await admin.metadata({ topics: [...topics], forceUpdate: true, retries: 0 });
    const offsetsAt = (timestamp: bigint) => listOffsets(admin, metadata, { timestamp, isolation });
    const [starts, ends] = await Promise.all([offsetsAt(EARLIEST), offsetsAt(LATEST)]);
    return toBounds(metadata, starts, ends);
  };

  return async (topics, isolation) => {
    for (let attempt = 1; ; attempt++) {
      const existing = await findExisting(topics);
      if (existing.length === 0) return new Map();
      try {
        return await ask(existing, isolation);
      } catch (fault) {
        const removed = existing.find((topic) => isUnknown(fault, topic));
        if (removed !== undefined) seen.delete(removed);
        if (attempt === BOUNDS_ATTEMPTS || (removed === undefined && isFinal(fault))) throw fault;
        // A leader has just changed, or is about to; or one broker knows of a topic that another one does not know.
        if (removed === undefined || attempt > 1) await delay(BOUNDS_ATTEMPT_WAIT_MS);
      }
    }
  };
}

type FetchedPartition = ReturnType<typeof fetchV17.parseResponse>['responses'][number]['partitions'][number];
type RecordBatch = NonNullable<FetchedPartition['records']>[number];

function toHeaders(pairs: RecordBatch['records'][number]['headers']): StreamRecord['headers'] {
  const entries = pairs.flatMap(([name, value]) => (name === null || value === null ? [] : [[String(name), value]]));
  return Object.fromEntries(entries);
}

function* toRecords(batch: RecordBatch, at: { topic: string; partition: number }): Generator<StreamRecord> {
  const isLogAppend = (batch.attributes & IS_LOG_APPEND) !== 0;
  for (const record of batch.records)
    yield {
      ...at,
      offset: Number(batch.firstOffset) + record.offsetDelta,
      timestampMs: Number(isLogAppend ? batch.maxTimestamp : batch.firstTimestamp + record.timestampDelta),
      key: record.key,
      value: record.value,
      headers: toHeaders(record.headers),
    };
}

/**
 * Returns the records of one answer without markers and without records of aborted transactions. The broker names an
 * aborted transaction by producer and first offset; it ends at its marker.
 * @returns the records, and the offset after the last batch; null when the answer has no batch
 */
function readCommitted(
  topic: string,
  partition: Pick<FetchedPartition, 'partitionIndex' | 'abortedTransactions' | 'records'>,
): { records: StreamRecord[]; next: number | null } {
  const aborted = [...(partition.abortedTransactions ?? [])].sort((a, b) => Number(a.firstOffset - b.firstOffset));
  const undone = new Set<bigint>();
  const records: StreamRecord[] = [];
  let next: number | null = null;
  for (const batch of partition.records ?? []) {
    const last = batch.firstOffset + BigInt(batch.lastOffsetDelta);
    next = Number(last) + 1;
    while (aborted[0] !== undefined && aborted[0].firstOffset <= last) undone.add(aborted.shift()!.producerId);
    if ((batch.attributes & IS_CONTROL) !== 0) {
      if (isAbortMarker(batch.records[0]?.key)) undone.delete(batch.producerId);
      continue;
    }
    if ((batch.attributes & IS_TRANSACTIONAL) !== 0 && undone.has(batch.producerId)) continue;
    for (const each of toRecords(batch, { topic, partition: partition.partitionIndex })) records.push(each);
  }
  return { records, next };
}
