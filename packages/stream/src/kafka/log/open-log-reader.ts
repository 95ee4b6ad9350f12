import { setTimeout as delay } from 'node:timers/promises';
import type { LogBounds, LogReader, LogSection } from '../../log.ts';
import type { StreamRecord } from '../../ports.ts';
import { Admin, type Connection, fetchV17, kGetConnection } from '../broker-client.ts';
import { guardConnections } from '../connection-guard.ts';
import { EARLIEST, LATEST, NO_EPOCH, NO_SESSION, READ_COMMITTED, READ_UNCOMMITTED } from '../protocol.ts';
import { type BrokerTarget, toPlatformaticSecurity } from '../security.ts';
import { readCommitted } from './committed-records.ts';
import { createGathered } from './gathered.ts';

const REQUEST_TIMEOUT_MS = 10_000;
const CONNECT_TIMEOUT_MS = 3_000;
/** A topic that was just created has leaders within a second. Brokers that are away are reported within seconds. */
const LEADER_RETRIES = 10;
const LEADER_WAIT_MS = 200;
/** Short, because the requested records exist already. */
const FETCH_WAIT_MS = 100;
/** About a thousand records of usual size in one answer. A larger record is sent all the same. */
const FETCH_BYTES_MAX = 1024 * 1024;
/** A partition without a leader has a new one within seconds. Thirty times half a second is an outage. */
const ATTEMPTS = 30;
const ATTEMPT_WAIT_MS = 500;
const OFFSET_OUT_OF_RANGE = 1;

export interface LogReaderOptions extends BrokerTarget {
  readonly clientId: string;
}

export function openAdmin(options: LogReaderOptions): Admin {
  const admin = new Admin({
    clientId: options.clientId,
    bootstrapBrokers: [...options.brokers],
    ...toPlatformaticSecurity(options),
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectTimeout: CONNECT_TIMEOUT_MS,
    retries: LEADER_RETRIES,
    retryDelay: LEADER_WAIT_MS,
  });
  guardConnections(admin, options.onFault);
  return admin;
}

class Reader {
  readonly #admin: Admin;
  readonly #decided = createGathered((topics) => this.#askBounds(topics, READ_COMMITTED));
  readonly #undecided = createGathered((topics) => this.#askBounds(topics, READ_UNCOMMITTED));

  constructor(options: LogReaderOptions) {
    this.#admin = openAdmin(options);
  }

  async bounds(topic: string, { undecided = false }: { undecided?: boolean } = {}): Promise<LogBounds[]> {
    return (await (undecided ? this.#undecided(topic) : this.#decided(topic))) ?? [];
  }

  /** By topic; topics that do not exist are absent. */
  async #askBounds(topics: readonly string[], isolationLevel: 0 | 1): Promise<Map<string, LogBounds[]>> {
    const known = (await this.#admin.listTopics()).filter((topic) => topics.includes(topic));
    if (known.length === 0) return new Map();
    const metadata = await this.#admin.metadata({ topics: [...known], forceUpdate: true });
    const partitionsOf = (topic: string) => [...(metadata.topics.get(topic)?.partitions.keys() ?? [])];
    const askOffsets = async (timestamp: bigint) => {
      const asked = known.map((name) => {
        return { name, partitions: partitionsOf(name).map((partitionIndex) => ({ partitionIndex, timestamp })) };
      });
      const found = await this.#admin.listOffsets({ topics: asked, isolationLevel });
      const offsets = new Map(found.map(({ name, partitions }) => [name, partitions]));
      return (topic: string, partition: number) =>
        Number(offsets.get(topic)?.find(({ partitionIndex }) => partitionIndex === partition)?.offset ?? 0);
    };
    const [startOf, endOf] = [await askOffsets(EARLIEST), await askOffsets(LATEST)];
    const boundsOf = (topic: string) =>
      partitionsOf(topic).map((partition) => {
        return { partition, start: startOf(topic, partition), end: endOf(topic, partition) };
      });
    return new Map(known.map((topic) => [topic, boundsOf(topic)]));
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
    const answer = await askFetch(connection, { topicId, partitions: [wanted] });
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

/** The connection to the leader of a partition. @throws Error while there is none */
export async function connectToLeader(
  admin: Admin,
  { topic, partition }: { topic: string; partition: number },
): Promise<{ topicId: string; connection: Connection }> {
  const metadata = await admin.metadata({ topics: [topic] });
  const found = metadata.topics.get(topic);
  const broker = metadata.brokers.get(found?.partitions[partition]?.leader ?? -1);
  if (found === undefined || broker === undefined) {
    await admin.metadata({ topics: [topic], forceUpdate: true });
    throw new Error(`${topic}/${partition} has no leader`);
  }
  return { topicId: found.id, connection: await connect(admin, broker) };
}

export function connect(admin: Admin, broker: { host: string; port: number }): Promise<Connection> {
  return new Promise((resolve, reject) => {
    admin[kGetConnection](broker, (error, opened) => (error ? reject(error) : resolve(opened!)));
  });
}

type FetchTopic = Parameters<typeof fetchV17.api.async>[7][number];
type FetchAnswer = Awaited<ReturnType<typeof fetchV17.api.async>>;

/** Fetches. The client throws for an error code, but the fault has the answer, which is returned. */
export async function askFetch(
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
