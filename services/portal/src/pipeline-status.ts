/** Counts open dead letters in Kafka, without a consumer group. */
import { IDENTITY_KEY_BYTES, TOPICS, type Topic } from '@playline/contracts';
import {
  deadLetterTopicOf,
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
    openDeadLetters: createCachedRead(() => countOpenDeadLetters(log, topics, environmentOf), DEAD_LETTERS_TTL_MS),
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
      const record = topic === messages ? await readLiveRecord(deadLetter).catch(() => null) : null;
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

export async function countOpenDeadLetters(
  log: Log,
  topics: readonly string[],
  environmentOf: (topic: string, deadLetter: StreamRecord) => Promise<string | null>,
  recordsMax = RECORDS_MAX,
): Promise<OpenDeadLetters> {
  const byEnvironment = new Map<string, number>();
  let isComplete = true;
  for (const topic of topics) {
    const deadLetterTopic = deadLetterTopicOf(topic);
    for (const { partition, start, end } of await log.bounds(deadLetterTopic)) {
      if (end - start > recordsMax) isComplete = false;
      const range = { topic: deadLetterTopic, partition, start: Math.max(start, end - recordsMax), end };
      for (const deadLetter of await readOpen(log, range)) {
        const environmentId = await environmentOf(topic, deadLetter);
        if (environmentId !== null) byEnvironment.set(environmentId, (byEnvironment.get(environmentId) ?? 0) + 1);
      }
    }
  }
  return { byEnvironment, isComplete };
}

/** Returns the dead letters that are not settled. The marker of a settled dead letter follows it in its partition. */
async function readOpen(log: Log, range: Parameters<LogReader['read']>[0]) {
  const open = new Map<number, StreamRecord>();
  for await (const record of log.read(range)) {
    const settled = record.headers[SETTLED_OFFSET];
    if (settled === undefined) open.set(record.offset, record);
    else open.delete(Number(String(settled)));
  }
  return [...open.values()];
}
