import { schemaSubjectOf } from '@playline/contracts';
import type { KafkaSecurity, StoreFetch } from '@playline/runtime';
import kafkajs from 'kafkajs';
import { toClient } from './client.ts';
import { mendKafkaTimer } from './timer.ts';

/**
 * Deletes every topic and subject of a test run.
 * @param target.prefix as given to `applyTopics`; never '', which would delete the topics of everybody
 */
export async function dropTopics(target: {
  brokers: readonly string[];
  security?: KafkaSecurity;
  registry: string;
  fetch?: StoreFetch;
  prefix: string;
}): Promise<void> {
  if (target.prefix === '') throw new RangeError('prefix: without one every topic would go');
  mendKafkaTimer();
  const logLevel = kafkajs.logLevel.NOTHING;
  const { brokers, security, fetch: ask = fetch } = target;
  const admin = new kafkajs.Kafka({
    clientId: 'playline-topics',
    ...toClient({ brokers, security }),
    logLevel,
  }).admin();
  await admin.connect();
  try {
    const topics = (await admin.listTopics()).filter((name) => name.startsWith(target.prefix));
    const drop = (topic: string) => ask(`${target.registry}/subjects/${schemaSubjectOf(topic)}`, { method: 'DELETE' });
    await Promise.all([admin.deleteTopics({ topics }), ...topics.map(drop)]);
  } finally {
    await admin.disconnect();
  }
}
