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

/** Short, because the requested records already exist. */
const FETCH_WAIT_MS = 100;
/** About a thousand records per response. A larger record is still returned. */
const FETCH_BYTES_MAX = 1024 * 1024;
/** Enough for the election of a new leader, which takes seconds. */
const ATTEMPTS = 30;
const ATTEMPT_WAIT_MS = 500;
const OFFSET_OUT_OF_RANGE = 1;

class Reader {
  readonly #admin: Admin;
  readonly #stable: (topic: string) => Promise<LogBounds[] | undefined>;
  readonly #uncommitted: (topic: string) => Promise<LogBounds[] | undefined>;

  constructor(options: LogReaderOptions) {
    this.#admin = openAdmin(options);
    const readBounds = createBoundsReader(this.#admin);
    this.#stable = batchCalls((topics) => readBounds(topics, READ_COMMITTED));
    this.#uncommitted = batchCalls((topics) => readBounds(topics, READ_UNCOMMITTED));
  }

  async bounds(topic: string, { readUncommitted = false }: { readUncommitted?: boolean } = {}): Promise<LogBounds[]> {
    return (await (readUncommitted ? this.#uncommitted(topic) : this.#stable(topic))) ?? [];
  }

  async committed(groupId: string, topic: string): Promise<Map<number, number>> {
    const groups = await this.#admin.listConsumerGroupOffsets({ groups: [groupId] });
    const partitions = groups[0]?.topics.find(({ name }) => name === topic)?.partitions ?? [];
    const committed = partitions.filter(({ committedOffset }) => committedOffset >= 0n);
    return new Map(committed.map(({ partitionIndex, committedOffset }) => [partitionIndex, Number(committedOffset)]));
  }

  async *read(range: LogSection): AsyncGenerator<StreamRecord> {
    let [at, empty] = [range.start, 0];
    while (at < range.end) {
      const { records, next, start } = await this.#fetch({ ...range, start: at });
      for (const record of records) if (record.offset >= at && record.offset < range.end) yield record;
      const reached = start !== null && start > at ? start : (next ?? at);
      empty = reached > at ? 0 : empty + 1;
      if (empty > 0 && range.isWhole !== true) return;
      if (empty === ATTEMPTS)
        throw new Error(
          `${range.topic}/${range.partition} could only be read up to offset ${at} of ${range.end}. Try again later.`,
        );
      // A newly elected leader returns the records later.
      if (empty > 0) await delay(ATTEMPT_WAIT_MS);
      at = reached;
    }
  }

  async #fetch(range: LogSection) {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#fetchOnce(range);
      } catch (error) {
        if (attempt === ATTEMPTS) throw error;
        await delay(ATTEMPT_WAIT_MS);
      }
    }
  }

  async #fetchOnce({ topic, partition, start }: LogSection) {
    const { topicId, connection } = await connectToLeader(this.#admin, { topic, partition });
    const epochs = { currentLeaderEpoch: NO_EPOCH, lastFetchedEpoch: NO_EPOCH };
    const requested = { partition, fetchOffset: BigInt(start), partitionMaxBytes: FETCH_BYTES_MAX, ...epochs };
    const response = await sendFetch(connection, { topicId, partitions: [requested] });
    const fetched = response.responses[0]?.partitions[0];
    if (fetched === undefined) throw new Error(`${topic}/${partition} is missing from the leader's response.`);
    // Retention deleted the requested records, so reading continues at the new start.
    if (fetched.errorCode === OFFSET_OUT_OF_RANGE) {
      const bounds = (await this.bounds(topic)).find((each) => each.partition === partition);
      return { records: [], next: null, start: bounds === undefined || bounds.start <= start ? null : bounds.start };
    }
    return { ...readCommitted(topic, fetched), start: null };
  }

  close(): Promise<void> {
    return this.#admin.close();
  }
}

type FetchTopic = Parameters<typeof fetchV17.api.async>[7][number];
type FetchResponse = Awaited<ReturnType<typeof fetchV17.api.async>>;

/** Sends a fetch. If an offset is out of range, the client throws a fault that contains the response. */
export async function sendFetch(
  connection: Connection,
  topic: FetchTopic,
  isolation: number = READ_COMMITTED,
): Promise<FetchResponse> {
  const { id, epoch } = NO_SESSION;
  const [wait, bytes] = [FETCH_WAIT_MS, FETCH_BYTES_MAX];
  try {
    return await fetchV17.api.async(connection, wait, 1, bytes, isolation, id, epoch, [topic], [], '');
  } catch (fault) {
    const { response } = fault as { response?: FetchResponse };
    const code = response?.responses?.[0]?.partitions[0]?.errorCode;
    if (response !== undefined && code === OFFSET_OUT_OF_RANGE) return response;
    throw fault;
  }
}

/** Connects on the first request. */
export const openLogReader = (options: LogReaderOptions): LogReader => new Reader(options);

/**
 * Combines all calls in one turn of the event loop, each for one name, into a single request for all names.
 * @param request resolves several names. Names without a result are missing from the map
 */
export function batchCalls<T>(
  request: (names: readonly string[]) => Promise<ReadonlyMap<string, T>>,
): (name: string) => Promise<T | undefined> {
  let next: { names: Set<string>; results: Promise<(name: string) => Promise<T | undefined>> } | null = null;
  const send = async (names: Set<string>) => {
    await new Promise((resolve) => setImmediate(resolve));
    next = null;
    try {
      const results = await request([...names]);
      return async (name: string) => results.get(name);
    } catch (fault) {
      if (names.size === 1) throw fault;
      // One topic without a leader must not fail the calls for other topics.
      return async (name: string) => (await request([name])).get(name);
    }
  };
  return async (name) => {
    if (next === null) {
      const names = new Set<string>();
      next = { names, results: send(names) };
    }
    next.names.add(name);
    return (await next.results)(name);
  };
}

export interface ReadTopicOptions extends BrokerTarget {
  topic: string;
}

/**
 * Reads a small topic up to its current end, one partition after the other, each in log order.
 * @throws Error if the brokers do not respond or the topic does not exist
 */
export async function readTopic({ topic, ...kafka }: ReadTopicOptions): Promise<StreamRecord[]> {
  const reader = openLogReader({ ...kafka, clientId: `read-${topic}` });
  try {
    const partitions = await reader.bounds(topic);
    if (partitions.length === 0) throw new Error(`Topic ${topic} does not exist. Create it first.`);
    const records: StreamRecord[] = [];
    for (const bounds of partitions) for await (const record of reader.read({ topic, ...bounds })) records.push(record);
    return records;
  } finally {
    await reader.close();
  }
}

/** Ten seconds in total, which is more than an election takes, or the first leaders of new topics on busy brokers. */
const BOUNDS_ATTEMPTS = 51;
const BOUNDS_ATTEMPT_WAIT_MS = 200;

type Metadata = Awaited<ReturnType<Admin['metadata']>>;
type Offsets = Map<string, number>;

/** Returns true if retries cannot succeed. A client fault may contain several faults. */
function isPermanent(fault: unknown): boolean {
  if (!(fault instanceof Error)) return false;
  const isOwn = (fault as { canRetry?: boolean }).canRetry === false;
  return isOwn || isPermanent(fault.cause) || (fault instanceof AggregateError && fault.errors.some(isPermanent));
}

async function listOffsets(
  admin: Admin,
  { brokers, topics }: Metadata,
  query: { timestamp: bigint; isolation: number },
): Promise<Offsets> {
  const all = [...topics].flatMap(([topic, { partitions }]) =>
    partitions.map(({ leader, leaderEpoch }, partitionIndex) => {
      // A former leader rejects the current epoch, and therefore cannot return an outdated end.
      const partition = { partitionIndex, currentLeaderEpoch: leaderEpoch, timestamp: query.timestamp };
      return { leader, topic, partition };
    }),
  );
  const offsets: Offsets = new Map();
  const requestFrom = async ([leader, byTopic]: [number, Map<string, (typeof all)[number]['partition'][]>]) => {
    const broker = brokers.get(leader);
    if (broker === undefined) throw new Error(`${[...byTopic.keys()].join(', ')}: a partition has no leader`);
    const requests = [...byTopic].map(([name, partitions]) => ({ name, partitions }));
    const response = await listOffsetsV7.api.async(await connect(admin, broker), NO_REPLICA, query.isolation, requests);
    for (const { name, partitions } of response.topics)
      for (const { partitionIndex, offset } of partitions) offsets.set(`${name}/${partitionIndex}`, Number(offset));
  };
  await Promise.all([...groupByLeader(all)].map(requestFrom));
  return offsets;
}

/** @throws Error if an offset is missing, because an unreadable log must not appear empty */
function toBounds({ topics }: Metadata, starts: Offsets, ends: Offsets): Map<string, LogBounds[]> {
  const boundsOf = (topic: string, partition: number): LogBounds => {
    const name = `${topic}/${partition}`;
    const [start, end] = [starts.get(name), ends.get(name)];
    if (start === undefined || end === undefined) throw new Error(`The leader of ${name} returned no bounds.`);
    return { partition, start, end };
  };
  return new Map(
    [...topics].map(([topic, { partitions }]) => [topic, [...partitions.keys()].map((at) => boundsOf(topic, at))]),
  );
}

/** Returns true if the client reports that the topic does not exist. */
const isUnknown = (fault: unknown, topic: string) =>
  fault instanceof UserError && fault.message === `Unknown topic ${topic}.`;

/**
 * Creates a function that reads the bounds of several logs using one metadata request and two requests per leader.
 * @returns bounds by topic. Topics that do not exist are missing from the map
 */
function createBoundsReader(
  admin: Admin,
): (topics: readonly string[], isolation: number) => Promise<Map<string, LogBounds[]>> {
  /** Topics known to exist. A request with an unknown topic fails for all topics, so new names are looked up first. */
  const existingTopics = new Set<string>();

  /** @throws Error if the brokers do not respond */
  const findExisting = async (topics: readonly string[]): Promise<readonly string[]> => {
    if (topics.every((topic) => existingTopics.has(topic))) return topics;
    const listed = await admin.listTopics();
    for (const topic of topics)
      if (listed.includes(topic)) existingTopics.add(topic);
      else existingTopics.delete(topic);
    return topics.filter((topic) => existingTopics.has(topic));
  };

  const request = async (topics: readonly string[], isolation: number): Promise<Map<string, LogBounds[]>> => {
    // Client retries are disabled, because they would also wait for a deleted topic.
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
        return await request(existing, isolation);
      } catch (fault) {
        const removed = existing.find((topic) => isUnknown(fault, topic));
        if (removed !== undefined) existingTopics.delete(removed);
        if (attempt === BOUNDS_ATTEMPTS || (removed === undefined && isPermanent(fault))) throw fault;
        // A leader is changing, or the brokers disagree on whether the topic exists.
        if (removed === undefined || attempt > 1) await delay(BOUNDS_ATTEMPT_WAIT_MS);
      }
    }
  };
}

type FetchedPartition = ReturnType<typeof fetchV17.parseResponse>['responses'][number]['partitions'][number];
type RecordBatch = NonNullable<FetchedPartition['records']>[number];

const toHeaders = (pairs: RecordBatch['records'][number]['headers']): StreamRecord['headers'] =>
  Object.fromEntries(pairs.flatMap(([name, value]) => (name == null || value == null ? [] : [[String(name), value]])));

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
 * Extracts the records from a response, without markers or aborted records. An aborted transaction ends at its marker.
 * @returns the records, and the offset after the last batch, which is null if there is no batch
 */
function readCommitted(
  topic: string,
  partition: Pick<FetchedPartition, 'partitionIndex' | 'abortedTransactions' | 'records'>,
): { records: StreamRecord[]; next: number | null } {
  const aborted = [...(partition.abortedTransactions ?? [])].sort((a, b) => Number(a.firstOffset - b.firstOffset));
  const aborting = new Set<bigint>();
  const records: StreamRecord[] = [];
  let next: number | null = null;
  for (const batch of partition.records ?? []) {
    const last = batch.firstOffset + BigInt(batch.lastOffsetDelta);
    next = Number(last) + 1;
    while (aborted[0] !== undefined && aborted[0].firstOffset <= last) aborting.add(aborted.shift()!.producerId);
    if ((batch.attributes & IS_CONTROL) !== 0) {
      if (isAbortMarker(batch.records[0]?.key)) aborting.delete(batch.producerId);
      continue;
    }
    if ((batch.attributes & IS_TRANSACTIONAL) !== 0 && aborting.has(batch.producerId)) continue;
    for (const each of toRecords(batch, { topic, partition: partition.partitionIndex })) records.push(each);
  }
  return { records, next };
}
