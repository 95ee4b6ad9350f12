import { FRAME_BYTES, schemaIdOf } from './records.ts';

/**
 * Text of a registered schema by its id; null when the registry answers that there is none.
 * @throws when the registry cannot be asked: then nobody knows
 */
export type SchemaSource = (id: number) => Promise<string | null>;

/** What can be done with the values of one schema id. */
export type SchemaReader<R> =
  | { readonly kind: 'readable'; readonly reader: R }
  /** No value of this id can be read: a dead letter. The reason holds nothing of any value. */
  | { readonly kind: 'unreadable'; readonly reason: string };

/** Readers of values by the id of the schema they were written with: made once, then found without waiting. */
export interface SchemaReaders<R> {
  /** What is known of an id, without waiting; undefined: `ask`. */
  known(id: number): SchemaReader<R> | undefined;
  /** Asks the registry, once for all who wait. @throws what the source threw; the next call asks again */
  ask(id: number): Promise<SchemaReader<R>>;
}

export interface SchemaReadersOptions<R> {
  readonly schemaOf: SchemaSource;
  /** Makes the reader of a writer's schema. @throws Error when ours cannot read it */
  readonly createReader: (writerSchema: string) => R;
  /** A clock of any origin that only goes forward, in milliseconds. */
  readonly nowMs?: () => number;
}

/** A registry that was restored from a copy may know an id a minute later; more often would ask for every poison record. */
const UNKNOWN_TRUSTED_MS = 60_000;
/** Ids in damaged records can be any; those that can be read are as many as there are versions of a schema. */
const UNREADABLE_MAX = 1_000;

/** Creates readers from the schemas of a registry: the one way in which any process comes from a schema id to values. */
export function createSchemaReaders<R>(options: SchemaReadersOptions<R>): SchemaReaders<R> {
  const { schemaOf, createReader, nowMs = () => performance.now() } = options;
  const readable = new Map<number, SchemaReader<R>>();
  const unreadable = new Map<number, { answer: SchemaReader<R>; untilMs: number }>();
  const asked = new Map<number, Promise<SchemaReader<R>>>();

  /** @param why what the id is of stands behind a colon, so that reasons can be counted without it */
  const refuse = (id: number, why: string, trustedMs: number) => {
    const answer = { kind: 'unreadable', reason: why } as const;
    unreadable.delete(id);
    const [oldest] = unreadable.keys();
    if (unreadable.size >= UNREADABLE_MAX) unreadable.delete(oldest!);
    unreadable.set(id, { answer, untilMs: nowMs() + trustedMs });
    return answer;
  };
  const make = async (id: number): Promise<SchemaReader<R>> => {
    const schema = await schemaOf(id);
    if (schema === null) return refuse(id, `schema not in the registry: ${id}`, UNKNOWN_TRUSTED_MS);
    try {
      const answer = { kind: 'readable', reader: createReader(schema) } as const;
      readable.set(id, answer);
      return answer;
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      return refuse(id, `schema cannot be read: ${id}, ${why}`, Number.POSITIVE_INFINITY);
    }
  };
  const known = (id: number) => {
    const refused = unreadable.get(id);
    return readable.get(id) ?? (refused !== undefined && refused.untilMs > nowMs() ? refused.answer : undefined);
  };
  return {
    known,
    ask(id) {
      const standing = asked.get(id);
      if (standing !== undefined) return standing;
      const answer = make(id).finally(() => asked.delete(id));
      asked.set(id, answer);
      return answer;
    },
  };
}

/** A value as it was read, or why it cannot be. */
export type ReadValue<T> =
  | { readonly kind: 'record'; readonly record: T }
  | { readonly kind: 'unreadable'; readonly reason: string };

/**
 * Reads the value of a record in the Confluent frame; a promise only where the registry must be asked first.
 * @throws what the source threw, by that promise: nobody knows then whether the value can be read
 */
export type RecordReader<T> = (value: Buffer | null) => ReadValue<T> | Promise<ReadValue<T>>;

/** Creates the reader of one topic's values, whatever version of its schema each was written with. */
export function createRecordReader<T>(options: SchemaReadersOptions<(body: Buffer) => T>): RecordReader<T> {
  const readers = createSchemaReaders(options);
  return (value) => {
    const id = value === null ? null : schemaIdOf(value);
    if (value === null || id === null) return { kind: 'unreadable', reason: 'no schema id' };
    const found = readers.known(id);
    if (found !== undefined) return readBy(found, value, id);
    return readers.ask(id).then((asked) => readBy(asked, value, id));
  };
}

function readBy<T>(found: SchemaReader<(body: Buffer) => T>, value: Buffer, id: number): ReadValue<T> {
  if (found.kind === 'unreadable') return found;
  try {
    return { kind: 'record', record: found.reader(value.subarray(FRAME_BYTES)) };
  } catch {
    // The decoder's words may hold bytes of the record, and so somebody's id.
    return { kind: 'unreadable', reason: `not a record of its schema: ${id}` };
  }
}
