import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type EachBatchPayload, Kafka, logLevel } from 'kafkajs';
import type { StreamRecord } from '../ports.ts';
import './consumer/kafkajs-overrides.ts';

export interface ReadTopicOptions {
  brokers: readonly string[];
  /** As it is called on the broker. */
  topic: string;
  /** Longest wait for the whole topic; default 30 s. */
  timeoutMs?: number;
}

/** Leaders are there within a second of the topic; ten times that is an outage. */
const LEADER_ATTEMPTS = 100;
const LEADER_WAIT_MS = 100;

/** What is told of each record. */
export type LogRecord = Pick<StreamRecord, 'partition' | 'offset' | 'key' | 'value'>;

const TIMEOUT_MS = 30_000;
/** A command is waited for by a person: brokers that do not answer are reported within seconds. */
const RETRY = { initialRetryTime: 100, maxRetryTime: 1_000, retries: 5 };
/** Only for a broker with nothing to say; a topic that is read to its end always has something. */
const FETCH_WAIT_MS = 100;

/**
 * Reads a small topic, such as a compacted one, from its first record to the end that it has now. Records of one
 * partition come in the order of the log. Nothing is committed and no group outlives the call.
 * @throws Error when the brokers do not answer, or the end is not reached in time
 */
export async function readTopic({ brokers, topic, timeoutMs = TIMEOUT_MS }: ReadTopicOptions): Promise<LogRecord[]> {
  const groupId = `read-${topic}-${randomUUID()}`;
  const kafka = new Kafka({ clientId: groupId, brokers: [...brokers], logLevel: logLevel.NOTHING, retry: RETRY });
  const ends = await readEnds(kafka, topic);
  if (ends.size === 0) return [];
  const records: LogRecord[] = [];
  const read = Promise.withResolvers<void>();
  const onBatch = async ({ batch }: EachBatchPayload) => {
    const end = ends.get(batch.partition);
    if (end === undefined) return;
    for (const { offset, key, value } of batch.messages)
      if (Number(offset) < end) records.push({ partition: batch.partition, offset: Number(offset), key, value });
    // Compaction leaves holes, but never takes a partition's last record.
    if (Number(batch.lastOffset()) + 1 >= end) ends.delete(batch.partition);
    if (ends.size === 0) read.resolve();
  };
  const consumer = kafka.consumer({ groupId, maxWaitTimeInMs: FETCH_WAIT_MS, allowAutoTopicCreation: false });
  consumer.on(consumer.events.CRASH, ({ payload }) => read.reject(payload.error));
  const late = setTimeout(() => read.reject(new Error(`${topic} was not read within ${timeoutMs} ms`)), timeoutMs);
  try {
    await consumer.connect();
    await consumer.subscribe({ topics: [topic], fromBeginning: true });
    await Promise.all([consumer.run({ autoCommit: false, eachBatch: onBatch }), read.promise]);
  } finally {
    clearTimeout(late);
    await consumer.disconnect();
  }
  return records;
}

/** Where each partition that holds records ends. */
async function readEnds(kafka: Kafka, topic: string): Promise<Map<number, number>> {
  const admin = kafka.admin();
  try {
    await admin.connect();
    const offsets = await askAgain(() => admin.fetchTopicOffsets(topic));
    const filled = offsets.filter(({ low, high }) => Number(high) > Number(low));
    return new Map(filled.map(({ partition, high }) => [partition, Number(high)]));
  } finally {
    await admin.disconnect();
  }
}

/** A topic just made has no leader for a moment, which kafkajs reports instead of asking again. */
async function askAgain<T>(ask: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask();
    } catch (error) {
      if (!isRetriable(error) || attempt === LEADER_ATTEMPTS) throw error;
      await delay(LEADER_WAIT_MS);
    }
  }
}

function isRetriable(error: unknown): boolean {
  return error instanceof Error && 'retriable' in error && error.retriable === true;
}
