/** Counts open dead letters in Kafka, without a consumer group. */
import { IDENTITY_KEY_BYTES, TOPICS, type Topic } from '@playline/contracts';
import {
  deadLetterTopicOf,
  type LogBounds,
  type LogReader,
  type SchemaRegistry,
  SETTLED_OFFSET,
  type StreamRecord,
} from '@playline/stream';
import { LIVE_LIMITS } from './live/limits.ts';
import { createReadLiveRecord } from './live/read-live-record.ts';

export interface PipelineStatus {
  openDeadLetters(): Promise<OpenDeadLetters>;
}

/** Dead letters that have been neither replayed nor dropped. */
export interface OpenDeadLetters {
  /** Counts by environment id. Excludes dead letters whose environment is unknown. */
  readonly byEnvironment: ReadonlyMap<string, number>;
  /** False if only some of the dead letters were counted. */
  readonly isComplete: boolean;
}

type Log = Pick<LogReader, 'bounds' | 'read'>;

export interface PipelineStatusParts {
  readonly reader: Log;
  readonly registry: Pick<SchemaRegistry, 'schemaOf'>;
  readonly topicPrefix: string;
}

const DEAD_LETTERS_TTL_MS = 10_000;

export function createPipelineStatus(parts: PipelineStatusParts): PipelineStatus {
  const { reader: log, topicPrefix } = parts;
  const messages = topicPrefix + TOPICS.messages.name;
  const environmentOf = createEnvironmentOf(messages, parts);
  const topics = Object.values<Topic>(TOPICS).map(({ name }) => topicPrefix + name);
  return {
    openDeadLetters: createCachedRead(createDeadLetterCounter(log, topics, environmentOf), DEAD_LETTERS_TTL_MS),
  };
}

function createEnvironmentOf(messages: string, { registry, topicPrefix }: PipelineStatusParts) {
  const readLiveRecord = createReadLiveRecord({
    topics: { messages, rejections: '', deadLetters: [deadLetterTopicOf(messages)] },
    schemaOf: registry.schemaOf,
    limits: LIVE_LIMITS,
  });
  const keyOf = new Map(Object.values<Topic>(TOPICS).map(({ name, key }) => [topicPrefix + name, key]));
  return async (topic: string, deadLetter: StreamRecord): Promise<string | null> => {
    if (deadLetter.key === null) {
      // The record of a message without an owner has no key, so the environment must be read from the value.
      const record = topic === messages ? await readLiveRecord(deadLetter) : null;
      return record?.entry?.environmentId ?? null;
    }
    const key = keyOf.get(topic);
    if (key === 'environment') return deadLetter.key.toString();
    if (key === 'environment + owner identity key' || key === 'environment + identity key')
      return deadLetter.key.subarray(0, -IDENTITY_KEY_BYTES).toString();
    return null;
  };
}

/** Concurrent callers share one read. Its result is cached for `ttlMs`. Failed reads are not cached. */
export function createCachedRead<T>(read: () => Promise<T>, ttlMs: number): () => Promise<T> {
  let currentRead: Promise<T> | null = null;
  let last: { readonly value: T; readonly readAt: number } | null = null;
  return async () => {
    if (last !== null && performance.now() - last.readAt < ttlMs) return last.value;
    currentRead ??= read()
      .then((value) => {
        last = { value, readAt: performance.now() };
        return value;
      })
      .finally(() => {
        currentRead = null;
      });
    return currentRead;
  };
}

/** Maximum number of records read per partition. */
const RECORDS_MAX = 1_000;

interface ReadPartition {
  readonly next: number;
  /** Environments of open dead letters by offset; null if unknown. */
  readonly open: ReadonlyMap<number, string | null>;
}

/** Returns a function that counts open dead letters. It reads only the records that it has not read before. */
export function createDeadLetterCounter(
  log: Log,
  topics: readonly string[],
  environmentOf: (topic: string, deadLetter: StreamRecord) => Promise<string | null>,
  recordsMax = RECORDS_MAX,
): () => Promise<OpenDeadLetters> {
  const partitions = new Map<string, ReadPartition>();
  const readOpen = async (topic: string, { partition, start, end }: LogBounds): Promise<ReadPartition['open']> => {
    const name = `${topic}/${partition}`;
    const known = partitions.get(name);
    const since = Math.max(start, end - recordsMax);
    // A topic that ends earlier than before was recreated.
    const open = new Map(known && known.next <= end ? [...known.open].filter(([offset]) => offset >= since) : []);
    let next = known && known.next <= end ? Math.max(since, known.next) : since;
    let isDecoded = true;
    const onFault = () => {
      isDecoded = false;
      return null;
    };
    for await (const record of log.read({ topic: deadLetterTopicOf(topic), partition, start: next, end })) {
      // The marker of a settled dead letter follows it in its partition.
      const settled = record.headers[SETTLED_OFFSET];
      if (settled === undefined) open.set(record.offset, await environmentOf(topic, record).catch(onFault));
      else open.delete(Number(String(settled)));
      next = record.offset + 1;
    }
    // While the schema registry does not respond, records without a key are read again.
    if (isDecoded) partitions.set(name, { next, open });
    return open;
  };
  return async () => {
    const bounds = await Promise.all(topics.map((topic) => log.bounds(deadLetterTopicOf(topic))));
    const byEnvironment = new Map<string, number>();
    for (const [index, topic] of topics.entries())
      for (const partition of bounds[index]!)
        for (const environmentId of (await readOpen(topic, partition)).values())
          if (environmentId !== null) byEnvironment.set(environmentId, (byEnvironment.get(environmentId) ?? 0) + 1);
    return { byEnvironment, isComplete: bounds.flat().every(({ start, end }) => end - start <= recordsMax) };
  };
}
