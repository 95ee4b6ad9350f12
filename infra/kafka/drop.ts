import { schemaSubjectOf } from '@playline/contracts';
import type { KafkaSecurity } from '@playline/runtime';
import type { StoreFetch } from '@playline/stores';
import { createRegistryAdmin } from '@playline/stream/kafka';
import { withAdmin } from './client.ts';

/**
 * Deletes every topic and subject of a test run.
 * @param target.prefix as given to `applyTopics`; never '', which would delete every topic
 */
export async function dropTopics(target: {
  brokers: readonly string[];
  security?: KafkaSecurity;
  registry: string;
  fetch?: StoreFetch;
  prefix: string;
}): Promise<void> {
  if (target.prefix === '') throw new RangeError('prefix: without a prefix every topic would be deleted');
  const registry = createRegistryAdmin({ url: target.registry, fetch: target.fetch });
  await withAdmin(target, async (admin) => {
    const topics = (await admin.listTopics()).filter((name) => name.startsWith(target.prefix));
    await admin.deleteTopics({ topics });
    // A subject that remains does no harm: no other run has its prefix.
    await Promise.allSettled(topics.map((topic) => registry.remove(schemaSubjectOf(topic))));
  });
}
