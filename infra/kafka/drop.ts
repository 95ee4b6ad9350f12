import { schemaSubjectOf } from '@playline/contracts';
import type { KafkaSecurity, StoreFetch } from '@playline/runtime';
import { withAdmin } from './client.ts';

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
  const { fetch: ask = fetch } = target;
  await withAdmin(target, async (admin) => {
    const topics = (await admin.listTopics()).filter((name) => name.startsWith(target.prefix));
    const drop = (topic: string) => ask(`${target.registry}/subjects/${schemaSubjectOf(topic)}`, { method: 'DELETE' });
    await Promise.all([admin.deleteTopics({ topics }), ...topics.map(drop)]);
  });
}
