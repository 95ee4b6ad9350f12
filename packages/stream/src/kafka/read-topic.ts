import type { StreamRecord } from '../ports.ts';
import { awaitDecided } from '../transactions.ts';
import { openLogReader } from './log/open-log-reader.ts';
import type { BrokerTarget } from './security.ts';

export interface ReadTopicOptions extends BrokerTarget {
  /** Name on the broker. */
  topic: string;
}

/**
 * Reads a small topic, such as a compacted one, from its first record to its present end: one partition after the
 * other, each in the order of the log. Waits for transactions that are open there. Joins no group and commits nothing.
 * @throws Error when the brokers do not answer, or there is no such topic
 * @throws OpenTransactionFault
 */
export async function readTopic({ topic, ...kafka }: ReadTopicOptions): Promise<StreamRecord[]> {
  const reader = openLogReader({ ...kafka, clientId: `read-${topic}` });
  try {
    const partitions = await awaitDecided(reader, topic);
    if (partitions.length === 0) throw new Error(`there is no topic ${topic}`);
    const records: StreamRecord[] = [];
    for (const bounds of partitions) for await (const record of reader.read({ topic, ...bounds })) records.push(record);
    return records;
  } finally {
    await reader.close();
  }
}
