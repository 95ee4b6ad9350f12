// Record logs: compacted topics in which the last record with an id is the current one.
import { createRecordReader, frameRecord, type RecordCodec, type SchemaSource } from '@playline/contracts';

export interface Change {
  /** Starts at 1 for each id. */
  readonly revision: number;
  readonly changedAt: number;
  readonly changedBy: string;
  /** Id of the request or command that made the change. */
  readonly requestId: string;
}

export interface RecordKind<R extends Change> {
  /** Lower case with hyphens; used in Redis keys and log messages. */
  readonly name: string;
  /** Topic name without prefix. */
  readonly topic: string;
  readonly codec: RecordCodec<R>;
  readonly idOf: (record: R) => string;
}

export interface ReceivedRecord<R> {
  readonly record: R;
  readonly partition: number;
  readonly offset: number;
}

/** Offsets of a partition, from `start` (inclusive) to `end` (exclusive). */
export interface LogRange {
  readonly partition: number;
  readonly start: number;
  readonly end: number;
}

export interface RecordLogReader<R> {
  /** Returns the current range of each partition. @throws Error if the log cannot be read or does not exist */
  bounds(): Promise<readonly LogRange[]>;
  /** Reads the records in order. @throws UnreadableRecord */
  read(range: LogRange): Promise<readonly ReceivedRecord<R>[]>;
}

export interface RecordLog<R> extends RecordLogReader<R> {
  /** Resolves when every in-sync replica has stored the record. @throws unless the broker confirms the record */
  append(record: R): Promise<Omit<ReceivedRecord<R>, 'record'>>;
}

export interface LoggedBytes {
  readonly partition: number;
  readonly offset: number;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
}

export interface LogPosition {
  /** Topic name without prefix. */
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
}

/** This release cannot read the record, and no later record with the same key has replaced it. */
export class UnreadableRecord extends Error {
  override readonly name = 'UnreadableRecord';
  readonly position: LogPosition;
  /** Contains no part of the record. */
  readonly reason: string;

  constructor(position: LogPosition, reason: string) {
    const { topic, partition, offset } = position;
    super(
      `a record of ${topic} cannot be read: ${reason} (partition ${partition}, offset ${offset}). ` +
        `If a newer release wrote the record, run that release. Otherwise skip the record with npm run keys -- skip-record --topic ${topic} --partition ${partition} --offset ${offset}`,
    );
    this.position = position;
    this.reason = reason;
  }
}

/**
 * Decodes a compacted topic. An unreadable record is an error, because it may revoke a key, unless a later record has
 * the same key. The generator yields every record in order (null for a deleted or unreadable record) and throws
 * `UnreadableRecord` at the end. @param topic topic name without prefix
 */
export function createLogDecoder<R>(
  codec: Pick<RecordCodec<R>, 'decoderOf'>,
  { schemaOf, topic }: { readonly schemaOf: SchemaSource; readonly topic: string },
): (records: AsyncIterable<LoggedBytes> | Iterable<LoggedBytes>) => AsyncGenerator<ReceivedRecord<R | null>> {
  const readValue = createRecordReader({ schemaOf, createReader: codec.decoderOf });
  return async function* decode(records) {
    const unreadable = new Map<string, UnreadableRecord>();
    for await (const { partition, offset, key, value } of records) {
      const name = `${partition} ${key === null ? `at ${offset}` : key.toString('hex')}`;
      unreadable.delete(name);
      const read = value === null ? null : await readValue(value);
      if (read?.kind === 'unreadable')
        unreadable.set(name, new UnreadableRecord({ topic, partition, offset }, read.reason));
      // The codec creates class instances, which would not be deeply equal to plain records.
      yield { partition, offset, record: read?.kind === 'record' ? structuredClone(read.record) : null };
    }
    const [fault] = unreadable.values();
    if (fault !== undefined) throw fault;
  };
}

export interface RecordLogReaderParts<R extends Change> {
  readonly kind: RecordKind<R>;
  readonly schemaOf: SchemaSource;
  bounds(): Promise<readonly LogRange[]>;
  read(range: LogRange): AsyncIterable<LoggedBytes>;
}

export interface RecordLogParts<R extends Change> extends RecordLogReaderParts<R> {
  /** Id of this record kind's registered schema. */
  readonly schemaId: number;
  /** Publishes with acks=all. */
  send(record: { key: Buffer; value: Buffer }): Promise<{ readonly partition: number; readonly offset: number }>;
}

/** Creates a record log: keys are record ids, values use Confluent framing. */
export function createRecordLog<R extends Change>(parts: RecordLogParts<R>): RecordLog<R> {
  const { kind, schemaId, send } = parts;
  return {
    ...createRecordLogReader(parts),
    append: async (record) => {
      const value = frameRecord(schemaId, kind.codec.encode(record));
      const { partition, offset } = await send({ key: Buffer.from(kind.idOf(record)), value });
      return { partition, offset };
    },
  };
}

export function createRecordLogReader<R extends Change>(parts: RecordLogReaderParts<R>): RecordLogReader<R> {
  const { kind, schemaOf } = parts;
  const decode = createLogDecoder(kind.codec, { schemaOf, topic: kind.topic });
  return {
    bounds: async () => {
      const bounds = await parts.bounds();
      // A topic without partitions would look like an empty log.
      if (bounds.length === 0) throw new Error(`the topic ${kind.topic} does not exist`);
      return bounds;
    },
    read: async (range) => {
      const received: ReceivedRecord<R>[] = [];
      let next = range.start;
      for await (const { record, partition, offset } of decode(parts.read(range))) {
        next = offset + 1;
        if (record !== null) received.push({ record, partition, offset });
      }
      // Compaction retains the last record, so a read that ends earlier is incomplete.
      if (next < range.end) throw new Error(`${kind.topic} was read only up to ${next} of ${range.end}: try again`);
      return received;
    },
  };
}
