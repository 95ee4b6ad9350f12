/** Saves the schemas of copied records with their ids, and registers them in the current registry. */
import type { Schemas } from '../await-store.ts';
import type { LogComparison } from './log-state.ts';
import type { Manifest } from './manifest.ts';

export type SavedSchema = Manifest['schemas'][number];

/** The part of a registry that registers schemas. A registered schema keeps its id. */
export interface SchemaRegistrar {
  register(subject: string, schema: string): Promise<number>;
}

/**
 * Makes the schemas of a backup available. Records in the log of the backup contain its ids, so these must not change.
 * @returns the ids in the current registry, by the ids in the backup
 * @throws Error if a registry has another schema under an id that records contain
 */
export async function restoreSchemas(
  { schemas, registrar }: { schemas: Schemas; registrar: SchemaRegistrar },
  saved: readonly SavedSchema[],
  log: LogComparison,
): Promise<ReadonlyMap<number, number>> {
  const ids = new Map<number, number>();
  // Registries assign ids in this order, so that an emptied registry can assign the same ids again.
  for (const { id, subject, schema } of saved.toSorted((a, b) => a.id - b.id)) {
    const current = await schemas.schemaOf(id);
    const isSame = current !== null && isEqual(current, schema);
    const currentId = isSame ? id : await registrar.register(subject, schema);
    if (log === 'same' && currentId !== id)
      throw new Error(
        `the registry has id ${currentId} for a schema of ${subject}, but records in the log contain id ${id}. ` +
          'Restore the registry from its own backup, or import the schemas with these ids.',
      );
    ids.set(id, currentId);
  }
  return ids;
}

const isEqual = (a: string, b: string) => JSON.stringify(JSON.parse(a)) === JSON.stringify(JSON.parse(b));
