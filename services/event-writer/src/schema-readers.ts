import { RetryableFault, UnknownSchemaFault } from '@playline/stream';

/** What is asked of a schema registry; `@playline/stream/kafka` has one. */
export interface SchemaSource {
  idOf(subject: string): Promise<number>;
  /** @throws UnknownSchemaFault when the registry answers and has no such id */
  schemaOf(id: number): Promise<string>;
}

/** Readers of records, one a schema id: made once, then found without waiting. */
export interface SchemaReaders<R> {
  /**
   * The reader of a schema id.
   * @throws RetryableFault while the schema is being asked for, or while the registry is not reachable
   * @throws UnreadableSchemaError when the registry does not know the id, or no reader can be made of the schema
   */
  readerOf(id: number): R;
  /** Asks for the latest schema of a subject, so that the first records need not wait. Never throws. */
  prefetch(subject: string): Promise<void>;
}

/** No record of this schema can be read: a dead letter. */
export class UnreadableSchemaError extends Error {
  override readonly name = 'UnreadableSchemaError';
}

/** A registry that was restored from a copy may know an id a minute later; more often would ask for every poison record. */
const UNKNOWN_TRUSTED_MS = 60_000;

type Entry<R> =
  | { kind: 'ready'; reader: R }
  | { kind: 'unreadable'; reason: string; untilMs: number }
  | { kind: 'asked' };

/**
 * Creates readers from the schemas of a registry. Taking a record is synchronous and the registry is not, so a record of
 * an unknown id is handed back with a RetryableFault until the registry has answered; it is never a dead letter only
 * because the registry is down.
 */
export function createSchemaReaders<R>(options: {
  source: SchemaSource;
  createReader(schema: string): R;
  /** Monotonic. */
  nowMs?: () => number;
}): SchemaReaders<R> {
  const { source, createReader, nowMs = () => performance.now() } = options;
  const entries = new Map<number, Entry<R>>();

  const ask = async (id: number): Promise<void> => {
    entries.set(id, { kind: 'asked' });
    let schema: string;
    try {
      schema = await source.schemaOf(id);
    } catch (error) {
      if (error instanceof UnknownSchemaFault)
        entries.set(id, { kind: 'unreadable', reason: 'not in the registry', untilMs: nowMs() + UNKNOWN_TRUSTED_MS });
      // Not reachable: the next try asks again.
      else entries.delete(id);
      return;
    }
    try {
      entries.set(id, { kind: 'ready', reader: createReader(schema) });
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      entries.set(id, { kind: 'unreadable', reason, untilMs: Number.POSITIVE_INFINITY });
    }
  };

  return {
    readerOf(id) {
      const entry = entries.get(id);
      if (entry?.kind === 'ready') return entry.reader;
      if (entry?.kind === 'unreadable' && entry.untilMs > nowMs())
        throw new UnreadableSchemaError(`schema ${id}: ${entry.reason}`);
      if (entry?.kind !== 'asked') void ask(id);
      throw new RetryableFault(`schema ${id} is being asked for`);
    },
    async prefetch(subject) {
      try {
        await ask(await source.idOf(subject));
      } catch {
        // The registry is down or knows no such subject yet: records will ask by their id.
      }
    },
  };
}
