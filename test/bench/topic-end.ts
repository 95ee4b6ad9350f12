import type { Bench } from './figure.ts';
import { createKafka } from './kafka-client.ts';

/** Number of records of a topic. Nothing here writes transaction markers or deletes records. */
export async function readEnd({ stores }: Bench, topic: string): Promise<number> {
  const admin = createKafka('bench', stores.kafka).admin();
  await admin.connect();
  try {
    return (await admin.fetchTopicOffsets(topic)).reduce((sum, { high }) => sum + Number(high), 0);
  } finally {
    await admin.disconnect();
  }
}
