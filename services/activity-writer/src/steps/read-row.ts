import type { LoggedVersion } from '@playline/chain';
import { createSchemaReaders, FRAME_BYTES, type RecordCodec, type SchemaSource, schemaIdOf } from '@playline/contracts';
import { RetryableFault, type StreamRecord } from '@playline/stream';

/** A row without its time, `waiting` while its schema is being fetched, or `unreadable`. */
export type Reading<R> =
  | { readonly kind: 'row'; readonly row: R }
  | { readonly kind: 'waiting' }
  | { readonly kind: 'unreadable'; readonly reason: string };

/** Reads a topic's records, each with the schema it was written with. */
export interface ReadRow<R> {
  /** Returns the result that is available immediately. */
  readNow(record: StreamRecord): Reading<R>;
  /** Fetches the schema if necessary. @throws RetryableFault while the registry is unavailable */
  readLater(record: StreamRecord): Promise<Exclude<Reading<R>, { kind: 'waiting' }>>;
}

export interface ReadRowOptions<T, R> {
  readonly codec: RecordCodec<T>;
  readonly schemaOf: SchemaSource;
  /** @throws RangeError that names the invalid member but not its value */
  readonly toRow: (record: T, version: LoggedVersion) => R;
}

type Reader<R> = (record: StreamRecord, value: Buffer) => R;

/** A placeholder: rows get their time when their block is closed. */
const NO_TIME = 0;

export function createReadRow<T, R>({ codec, schemaOf, toRow }: ReadRowOptions<T, R>): ReadRow<R> {
  const createReader = (schema: string): Reader<R> => {
    const decode = codec.decoderOf(schema);
    return ({ partition, offset, timestampMs }, value) =>
      toRow(decode(value.subarray(FRAME_BYTES)), { updatedAt: NO_TIME, partition, offset, loggedAtMs: timestampMs });
  };
  const readers = createSchemaReaders({ schemaOf, createReader });
  return {
    readNow(record) {
      const id = record.value === null ? null : schemaIdOf(record.value);
      if (id === null) return { kind: 'unreadable', reason: 'not in the Confluent wire format' };
      const found = readers.get(id);
      if (found === undefined) return { kind: 'waiting' };
      return found.kind === 'unreadable' ? found : read(found.reader, record);
    },
    async readLater(record) {
      const found = await readers.fetch(schemaIdOf(record.value!)!).catch((cause: unknown) => {
        throw new RetryableFault('the schema registry does not respond', { cause });
      });
      return found.kind === 'unreadable' ? found : read(found.reader, record);
    },
  };
}

function read<R>(reader: Reader<R>, record: StreamRecord): Exclude<Reading<R>, { kind: 'waiting' }> {
  try {
    return { kind: 'row', row: reader(record, record.value!) };
  } catch (error) {
    // avsc error messages may contain the record's bytes. A RangeError only names the member.
    const reason = error instanceof RangeError ? error.message : 'not a record of its schema';
    return { kind: 'unreadable', reason };
  }
}
