import { IDENTITY_KEY_BYTES, type SchemaSource, TOPICS, type Topic } from '@playline/contracts';
import {
  deadLetterTopicOf,
  type LogReader,
  type SchemaRegistry,
  SETTLED_OFFSET,
  type StreamRecord,
} from '@playline/stream';
import { LIVE_LIMITS } from './live/limits.ts';
import { createReadLiveRecord } from './live/read-live-record.ts';

/** How the pipeline stands, for pages that tell it beside their own figures. Each throws what the brokers throw. */
export interface PipelineStatus {
  /** At most two seconds old. */
  writerDelay(): Promise<WriterDelay>;
  /** At most ten seconds old. */
  openDeadLetters(): Promise<OpenDeadLetters>;
}

export interface PipelineStatusParts {
  readonly reader: Pick<LogReader, 'bounds' | 'committed' | 'read'>;
  readonly registry: Pick<SchemaRegistry, 'schemaOf'>;
  readonly topicPrefix: string;
  /** Consumer group of the event writer. */
  readonly writerGroup: string;
}

const DELAY_KEEP_MS = 2_000;
const DEAD_LETTERS_KEEP_MS = 10_000;

/** Reads the log as part of no group; with many pages looked at, as seldom as with one. */
export function createPipelineStatus({
  reader: log,
  registry,
  topicPrefix,
  writerGroup,
}: PipelineStatusParts): PipelineStatus {
  const messages = topicPrefix + TOPICS.messages.name;
  const environmentOf = createEnvironmentOf(messages, registry.schemaOf, topicPrefix);
  const topics = Object.values<Topic>(TOPICS).map(({ name }) => topicPrefix + name);
  return {
    writerDelay: createShared(() => readWriterDelay({ log, topic: messages, writerGroup }), DELAY_KEEP_MS),
    openDeadLetters: createShared(() => countOpenDeadLetters({ log, topics, environmentOf }), DEAD_LETTERS_KEEP_MS),
  };
}

function createEnvironmentOf(messages: string, schemaOf: SchemaSource, topicPrefix: string) {
  const letters = [deadLetterTopicOf(messages)];
  const readFinding = createReadLiveRecord({
    topics: { messages, rejections: '', deadLetters: letters },
    schemaOf,
    limits: LIVE_LIMITS,
  });
  const keyOf = new Map(Object.values<Topic>(TOPICS).map(({ name, key }) => [topicPrefix + name, key]));
  return async (topic: string, letter: StreamRecord): Promise<string | null> => {
    const key = keyOf.get(topic);
    if (letter.key === null) {
      if (topic !== messages) return null;
      // A message of nobody has no key, and says itself where it was sent.
      const finding = await readFinding(letter).catch(() => null);
      return finding?.entry?.environmentId ?? null;
    }
    if (key === 'environment') return letter.key.toString();
    // The id of the environment with the identity key behind it.
    if (key === 'environment + owner identity key' || key === 'environment + identity key')
      return letter.key.subarray(0, -IDENTITY_KEY_BYTES).toString();
    return null;
  };
}

/**
 * Reads something for everybody who asks: one reading at a time, and what it brought counts for a while. A reading that failed
 * is told to all who waited for it, and the next one asks again.
 * @param keepMs how long an answer counts, in milliseconds
 */
export function createShared<T>(read: () => Promise<T>, keepMs: number): () => Promise<T> {
  let reading: Promise<T> | null = null;
  let last: { readonly value: T; readonly readAt: number } | null = null;
  return async () => {
    if (last !== null && performance.now() - last.readAt < keepMs) return last.value;
    reading ??= read()
      .then((value) => {
        last = { value, readAt: performance.now() };
        return value;
      })
      .finally(() => {
        reading = null;
      });
    return reading;
  };
}

/** Records that could not be processed, and that nobody has replayed or dropped. */
export interface OpenDeadLetters {
  readonly total: number;
  /** By environment id, of those that tell which. */
  readonly byEnvironment: ReadonlyMap<string, number>;
  /** False where there are more than are counted: all numbers are at least so high. */
  readonly isWhole: boolean;
}

interface OpenDeadLettersParts {
  readonly log: Pick<LogReader, 'bounds' | 'read'>;
  /** Topics whose dead letters are counted, as they are called on the brokers. */
  readonly topics: readonly string[];
  /** Environment of a letter; null where it does not tell. */
  readonly environmentOf: (topic: string, letter: StreamRecord) => Promise<string | null>;
  /** Records read of a partition at most, the newest. */
  readonly recordsMax?: number;
}

/** A healthy pipeline has none. With a thousand in one partition the exact number matters no more: the command lists them. */
const RECORDS_MAX = 1_000;

/** Counts the open letters. Reads the newest of each partition; their topics are empty as a rule. @throws Error of the brokers */
export async function countOpenDeadLetters(parts: OpenDeadLettersParts): Promise<OpenDeadLetters> {
  const { log, topics, environmentOf, recordsMax = RECORDS_MAX } = parts;
  const byEnvironment = new Map<string, number>();
  let total = 0;
  let isWhole = true;
  for (const topic of topics) {
    const deadTopic = deadLetterTopicOf(topic);
    for (const { partition, start, end } of await log.bounds(deadTopic)) {
      if (end - start > recordsMax) isWhole = false;
      for (const letter of await readOpen(log, {
        topic: deadTopic,
        partition,
        start: Math.max(start, end - recordsMax),
        end,
      })) {
        total++;
        const environmentId = await environmentOf(topic, letter);
        if (environmentId !== null) byEnvironment.set(environmentId, (byEnvironment.get(environmentId) ?? 0) + 1);
      }
    }
  }
  return { total, byEnvironment, isWhole };
}

/** A mark that settles a letter stands behind it in the same partition. */
async function readOpen(
  log: OpenDeadLettersParts['log'],
  range: Parameters<LogReader['read']>[0],
): Promise<readonly StreamRecord[]> {
  const open = new Map<number, StreamRecord>();
  for await (const record of log.read(range)) {
    const settled = record.headers[SETTLED_OFFSET];
    if (settled === undefined) open.set(record.offset, record);
    else open.delete(Number(String(settled)));
  }
  return [...open.values()];
}

/** What the event writer has not stored yet, of all environments together: one writer stores for all. */
export interface WriterDelay {
  /** Messages that stand on the log and are not stored. */
  readonly waiting: number;
  /** When the oldest of them came to the log, in epoch milliseconds; null while nothing waits. */
  readonly oldestMs: number | null;
}

interface WriterDelayParts {
  readonly log: Pick<LogReader, 'bounds' | 'committed' | 'read'>;
  /** Topic of messages, as it is called on the brokers. */
  readonly topic: string;
  /** Consumer group of the event writer: what it has committed is stored. */
  readonly writerGroup: string;
}

/** Asks how far the writer is behind: one record a partition is read, the first that is not stored. @throws Error of the brokers */
export async function readWriterDelay({ log, topic, writerGroup }: WriterDelayParts): Promise<WriterDelay> {
  const [bounds, committed] = await Promise.all([log.bounds(topic), log.committed(writerGroup, topic)]);
  const partitions = await Promise.all(
    bounds.map(async ({ partition, start, end }) => {
      const next = Math.max(start, committed.get(partition) ?? start);
      // Behind the last record there may be markers of transactions, which nobody stores.
      for await (const { timestampMs } of log.read({ topic, partition, start: next, end }))
        return { waiting: end - next, oldestMs: timestampMs };
      return null;
    }),
  );
  const behind = partitions.filter((each) => each !== null);
  return {
    waiting: behind.reduce((sum, { waiting }) => sum + waiting, 0),
    oldestMs:
      behind.length === 0
        ? null
        : behind
            .map(({ oldestMs }) => oldestMs)
            .reduce((least, each) => Math.min(least, each), Number.POSITIVE_INFINITY),
  };
}
