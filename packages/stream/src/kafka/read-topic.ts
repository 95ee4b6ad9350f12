import type { StreamRecord } from '../ports.ts';
import { openLogReader } from './log/open-log-reader.ts';
import type { BrokerTarget } from './security.ts';

export interface ReadTopicOptions extends BrokerTarget {
  /** Name on the broker. */
  topic: string;
}

/**
 * Reads a small topic, such as a compacted one, from its first record to its present end: one partition after the
 * other, each in the order of the log. Joins no group and commits nothing.
 * @throws Error when the brokers do not answer, or there is no such topic
 */
export async function readTopic({ topic, ...kafka }: ReadTopicOptions): Promise<StreamRecord[]> {
  const reader = openLogReader({ ...kafka, clientId: `read-${topic}` });
  try {
    const partitions = await reader.bounds(topic);
    if (partitions.length === 0) throw new Error(`there is no topic ${topic}`);
    const records: StreamRecord[] = [];
    for (const bounds of partitions) for await (const record of reader.read({ topic, ...bounds })) records.push(record);
    return records;
  } finally {
    await reader.close();
  }
}
