import { IDENTITY_KEY_BYTES, type SchemaSource, TOPICS, type Topic } from '@playline/contracts';
import { deadLetterTopicOf, type LogReader, type SchemaRegistry, type StreamRecord } from '@playline/stream';
import { LIVE_LIMITS } from '../live/limits.ts';
import { createReadFinding } from '../live/read-entries.ts';
import { countOpenLetters, type OpenLetters } from './open-letters.ts';
import { readWriterDelay, type WriterDelay } from './writer-delay.ts';

export type { OpenLetters } from './open-letters.ts';
export type { WriterDelay } from './writer-delay.ts';

/** How the pipeline stands, for pages that tell it beside their own figures. Each throws what the brokers throw. */
export interface PipelineStanding {
  /** At most two seconds old. */
  writerDelay(): Promise<WriterDelay>;
  /** At most ten seconds old. */
  openLetters(): Promise<OpenLetters>;
}

export interface StandingParts {
  readonly reader: Pick<LogReader, 'bounds' | 'committed' | 'read'>;
  readonly registry: Pick<SchemaRegistry, 'schemaOf'>;
  readonly topicPrefix: string;
  /** Consumer group of the event writer. */
  readonly writerGroup: string;
}

const DELAY_KEEP_MS = 2_000;
const LETTERS_KEEP_MS = 10_000;

/** Reads the log as part of no group; with many pages looked at, as seldom as with one. */
export function createStanding({ reader: log, registry, topicPrefix, writerGroup }: StandingParts): PipelineStanding {
  const messages = topicPrefix + TOPICS.messages.name;
  const environmentOf = createEnvironmentOf(messages, registry.schemaOf, topicPrefix);
  const topics = Object.values<Topic>(TOPICS).map(({ name }) => topicPrefix + name);
  return {
    writerDelay: createShared(() => readWriterDelay({ log, topic: messages, writerGroup }), DELAY_KEEP_MS),
    openLetters: createShared(() => countOpenLetters({ log, topics, environmentOf }), LETTERS_KEEP_MS),
  };
}

function createEnvironmentOf(messages: string, schemaOf: SchemaSource, topicPrefix: string) {
  const letters = [deadLetterTopicOf(messages)];
  const readFinding = createReadFinding({
    topics: { messages, rejections: '', letters },
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
