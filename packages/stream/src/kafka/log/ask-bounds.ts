import { setTimeout as delay } from 'node:timers/promises';
import type { LogBounds } from '../../log.ts';
import { type Admin, listOffsetsV7 } from '../broker-client.ts';
import { EARLIEST, LATEST, NO_EPOCH, NO_REPLICA } from '../protocol.ts';
import { connect } from './open-admin.ts';

/** Two seconds in all: more than an election takes. */
const ATTEMPTS = 10;
const ATTEMPT_WAIT_MS = 200;

type Metadata = Awaited<ReturnType<Admin['metadata']>>;
/** By topic and partition. */
type Offsets = Map<string, number>;

/** Whether asking again cannot help. Faults of several brokers come as one fault. */
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
  const byLeader = new Map<number, Map<string, number[]>>();
  for (const [topic, { partitions }] of topics)
    for (const [partition, { leader }] of partitions.entries()) {
      const asked = byLeader.get(leader) ?? new Map<string, number[]>();
      asked.set(topic, [...(asked.get(topic) ?? []), partition]);
      byLeader.set(leader, asked);
    }
  const offsets: Offsets = new Map();
  const askLeader = async ([leader, asked]: [number, Map<string, number[]>]) => {
    const broker = brokers.get(leader);
    if (broker === undefined) throw new Error(`${[...asked.keys()].join(', ')} has a partition without a leader`);
    const toQuestion = (partitionIndex: number) => {
      return { partitionIndex, currentLeaderEpoch: NO_EPOCH, timestamp: of.timestamp };
    };
    const questions = [...asked].map(([name, partitions]) => ({ name, partitions: partitions.map(toQuestion) }));
    const connection = await connect(admin, broker);
    const answer = await listOffsetsV7.api.async(connection, NO_REPLICA, of.isolation, questions);
    for (const { name, partitions } of answer.topics)
      for (const { partitionIndex, offset } of partitions) offsets.set(`${name}/${partitionIndex}`, Number(offset));
  };
  await Promise.all([...byLeader].map(askLeader));
  return offsets;
}

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

  const readMetadata = async (topics: readonly string[]): Promise<Metadata | null> => {
    const areSeen = topics.every((topic) => seen.has(topic));
    if (!areSeen) for (const topic of await admin.listTopics()) if (topics.includes(topic)) seen.add(topic);
    const asked = topics.filter((topic) => seen.has(topic));
    if (asked.length === 0) return null;
    try {
      return await admin.metadata({ topics: asked, forceUpdate: true });
    } catch (fault) {
      for (const topic of asked) seen.delete(topic);
      // One of them may have been removed meanwhile.
      if (areSeen) return await readMetadata(topics);
      throw fault;
    }
  };

  return async (topics, isolation) => {
    for (let attempt = 1; ; attempt++) {
      const metadata = await readMetadata(topics);
      if (metadata === null) return new Map();
      const ask = (timestamp: bigint) => askOffsets(admin, metadata, { timestamp, isolation });
      try {
        const [starts, ends] = await Promise.all([ask(EARLIEST), ask(LATEST)]);
        const toBounds = (topic: string, partition: number): LogBounds => {
          const name = `${topic}/${partition}`;
          return { partition, start: starts.get(name) ?? 0, end: ends.get(name) ?? 0 };
        };
        const boundsOf = ([topic, { partitions }]: [string, { partitions: readonly unknown[] }]) =>
          [topic, [...partitions.keys()].map((partition) => toBounds(topic, partition))] as const;
        return new Map([...metadata.topics].map(boundsOf));
      } catch (fault) {
        // A leader has just changed, or is about to.
        if (attempt === ATTEMPTS || isFinal(fault)) throw fault;
        await delay(ATTEMPT_WAIT_MS);
      }
    }
  };
}
