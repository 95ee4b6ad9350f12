import { schemaSubjectOf } from '@playline/contracts';
import type { RegistryAdmin } from '@playline/stream/kafka';
import type { Admin } from 'kafkajs';
import { retryTemporary } from './leaders.ts';

/**
 * Refuses a registry that lacks a schema of a topic with records. Such a registry is empty or the wrong one. It would
 * assign ids that occur in those records already, and records would be read with wrong schemas.
 * @param topics existing topics, with the prefix; those without a schema are skipped
 * @throws Error naming the subject and what to do, before anything is registered
 */
export async function assertSchemasKnown(
  admin: Admin,
  registry: RegistryAdmin,
  topics: readonly { readonly name: string; readonly schema: string | null }[],
): Promise<void> {
  for (const { name, schema } of topics) {
    if (schema === null || (await registry.hasSubject(schemaSubjectOf(name)))) continue;
    const partitions = await retryTemporary(() => admin.fetchTopicOffsets(name));
    if (partitions.every(({ low, high }) => low === high)) continue;
    throw new Error(
      `schema registry: ${name}-value does not exist, but the topic ${name} holds records with ids of its schemas. ` +
        'Is SCHEMA_REGISTRY_URL right? If the registry was emptied, restore it from its copy, and only then start ' +
        'services: without it those records cannot be read. If they may go, delete the topic.',
    );
  }
}
