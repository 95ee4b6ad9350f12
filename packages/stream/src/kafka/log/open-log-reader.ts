import { setTimeout as delay } from 'node:timers/promises';
import type { LogBounds, LogReader, LogSection } from '../../log.ts';
import type { StreamRecord } from '../../ports.ts';
import { type Admin, type Connection, fetchV17 } from '../broker-client.ts';
import { NO_EPOCH, NO_SESSION, READ_COMMITTED, READ_UNCOMMITTED } from '../protocol.ts';
import { createAskBounds } from './ask-bounds.ts';
import { readCommitted } from './committed-records.ts';
import { connectToLeader, type LogReaderOptions, openAdmin } from './open-admin.ts';

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
  readonly #undecided: (topic: string) => Promise<LogBounds[] | undefined>;

  constructor(options: LogReaderOptions) {
    this.#admin = openAdmin(options);
    const askBounds = createAskBounds(this.#admin);
    this.#decided = createGathered((topics) => askBounds(topics, READ_COMMITTED));
    this.#undecided = createGathered((topics) => askBounds(topics, READ_UNCOMMITTED));
  }

  async bounds(topic: string, { undecided = false }: { undecided?: boolean } = {}): Promise<LogBounds[]> {
    return (await (undecided ? this.#undecided(topic) : this.#decided(topic))) ?? [];
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

/**
 * Creates a question about one name that shares its request with all that are asked in the same turn of the event loop.
 * Copies of many logs are compared at the same moment: each comparison alone would cost the brokers three requests or more.
 * @param ask answers for several names at once; names without an answer are absent
 */
export function createGathered<T>(
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
