import type { Admin } from 'kafkajs';
import { retryWhileLeading } from './leaders.ts';
import { isSubjectKnown, type Registry } from './registry.ts';

/**
 * Refuses a registry that knows nothing of a topic which holds records. It was emptied, or it is another: it would give
 * out ids that stand in those records already, and they would be read by schemas that they were not written with.
 * @param topics that stand, with the prefix; those without a schema are passed over
 * @throws Error naming the subject and what to do, before anything is registered
 */
export async function assertSchemasKnown(
  admin: Admin,
  registry: Registry,
  topics: readonly { readonly name: string; readonly schema: string | null }[],
): Promise<void> {
  for (const { name, schema } of topics) {
    if (schema === null || (await isSubjectKnown(registry, `${name}-value`))) continue;
    const partitions = await retryWhileLeading(() => admin.fetchTopicOffsets(name));
    if (partitions.every(({ low, high }) => low === high)) continue;
    throw new Error(
      `schema registry: ${name}-value is not there, but the topic ${name} holds records with ids of its schemas. ` +
        'Is SCHEMA_REGISTRY_URL right? If the registry was emptied, restore it from its copy, and only then start ' +
        'services: without it those records cannot be read. If they may go, delete the topic.',
    );
  }
}
