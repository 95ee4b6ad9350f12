import { Kafka, logLevel } from 'kafkajs';
import type { Bench } from './figure.ts';

/** How many records a topic has; nothing here writes markers or deletes. */
export async function readEnd({ stores }: Bench, topic: string): Promise<number> {
  const admin = new Kafka({ clientId: 'bench', brokers: stores.kafka, logLevel: logLevel.NOTHING }).admin();
  await admin.connect();
  try {
    return (await admin.fetchTopicOffsets(topic)).reduce((sum, { high }) => sum + Number(high), 0);
  } finally {
    await admin.disconnect();
  }
}
