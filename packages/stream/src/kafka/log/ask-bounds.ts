import { setTimeout as delay } from 'node:timers/promises';
import type { LogBounds } from '../../log.ts';
import { type Admin, listOffsetsV7, UserError } from '../broker-client.ts';
import { connect, groupByLeader } from '../leaders.ts';
import { EARLIEST, LATEST, NO_REPLICA } from '../protocol.ts';

/** Two seconds in all: more than an election takes. */
const ATTEMPTS = 11;
const ATTEMPT_WAIT_MS = 200;

type Metadata = Awaited<ReturnType<Admin['metadata']>>;
/** By topic and partition. */
type Offsets = Map<string, number>;

interface AskedPartition {
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

async function askOffsets(
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
  const askLeader = async ([leader, asked]: [number, Map<string, AskedPartition[]>]) => {
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
export function createAskBounds(
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
    const offsetsAt = (timestamp: bigint) => askOffsets(admin, metadata, { timestamp, isolation });
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
        if (attempt === ATTEMPTS || (removed === undefined && isFinal(fault))) throw fault;
        // A leader has just changed, or is about to; or one broker knows of a topic that another one does not know.
        if (removed === undefined || attempt > 1) await delay(ATTEMPT_WAIT_MS);
      }
    }
  };
}
