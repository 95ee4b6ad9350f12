import { createSchemaReaders } from '@playline/contracts';
import { RetryableFault, type SchemaRegistry } from '@playline/stream';

/** Readers of records, one a schema id, for whoever cannot wait. */
export interface BlockReaders<R> {
  /**
   * The reader of a schema id.
   * @throws RetryableFault while the schema is being asked for, or while the registry is not reachable
   * @throws UnreadableSchemaError when the registry does not know the id, or no reader can be made of the schema
   */
  readerOf(id: number): R;
  /** Asks for the schema that this release would write, so that the first records need not wait. Never throws. */
  prefetch(subject: string, schema: string): Promise<void>;
}

/** No record of this schema can be read: a dead letter. */
export class UnreadableSchemaError extends Error {
  override readonly name = 'UnreadableSchemaError';
}

/**
 * Creates readers from the schemas of a registry. Taking a record is synchronous and the registry is not, so a record of
 * an unknown id is handed back with a RetryableFault until the registry has answered; it is never a dead letter only
 * because the registry is down.
 */
export function createBlockReaders<R>(options: {
  registry: SchemaRegistry;
  createReader(schema: string): R;
  /** Monotonic. */
  nowMs?: () => number;
}): BlockReaders<R> {
  const { registry, ...rest } = options;
  const readers = createSchemaReaders({ ...rest, schemaOf: registry.schemaOf });
  return {
    readerOf(id) {
      const found = readers.known(id);
      if (found?.kind === 'readable') return found.reader;
      if (found?.kind === 'unreadable') throw new UnreadableSchemaError(found.reason);
      // A registry that is not reachable is asked again by the next try.
      readers.ask(id).catch(() => {});
      throw new RetryableFault(`schema ${id} is being asked for`);
    },
    async prefetch(subject, schema) {
      try {
        await readers.ask(await registry.idOf(subject, schema));
      } catch {
        // The registry is down or does not have it yet: records will ask by their id.
      }
    },
  };
}
