import { Kafka, logLevel } from 'kafkajs';
import { patchKafkaTimer } from '../../infra/kafka/timer.ts';
import type { Bench } from './figure.ts';

// Creates a kafkajs client without negative timer delays, whose cost the services avoid too.
export function createKafka(clientId: string, brokers: readonly string[], level: logLevel = logLevel.NOTHING): Kafka {
  patchKafkaTimer();
  return new Kafka({ clientId, brokers: [...brokers], logLevel: level });
}

type Admin = ReturnType<Kafka['admin']>;

export async function withAdmin<T>(brokers: readonly string[], work: (admin: Admin) => Promise<T>): Promise<T> {
  const admin = createKafka('bench', brokers).admin();
  await admin.connect();
  try {
    return await work(admin);
  } finally {
    await admin.disconnect();
  }
}

/** Returns the number of records in a topic that has no transaction markers and no deleted records. */
export const readEnd = ({ stores }: Pick<Bench, 'stores'>, topic: string): Promise<number> =>
  withAdmin(stores.kafka, async (admin) =>
    (await admin.fetchTopicOffsets(topic)).reduce((sum, { high }) => sum + Number(high), 0),
  );
