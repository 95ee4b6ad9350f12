import { createRecordReader, frameRecord, type RecordCodec, type SchemaSource } from '@playline/contracts';

/** What every record has about its change, so that one can find out later who did what. */
export interface Change {
  /** 1 for the first record of an id, and one more with each. */
  readonly revision: number;
  /** Epoch milliseconds. */
  readonly changedAt: number;
  /** Who requested it, such as the account of an operator. */
  readonly changedBy: string;
  /** One id for everything that one request or command has changed. */
  readonly requestId: string;
}

/** A kind of record whose source of truth is a compacted topic: the last record of each id counts. */
export interface RecordKind<R extends Change> {
  /** Name of its records, in lower case with hyphens; part of Redis keys and messages. */
  readonly name: string;
  /** Name of its topic, without prefix. */
  readonly topic: string;
  readonly codec: RecordCodec<R>;
  readonly idOf: (record: R) => string;
}

/** A record and its position in the log. */
export interface ReceivedRecord<R> {
  readonly record: R;
  readonly partition: number;
  readonly offset: number;
}

/** Offsets of a partition from `start` to before `end`. */
export interface LogRange {
  readonly partition: number;
  readonly start: number;
  readonly end: number;
}

/** The log of one kind of records, for readers. */
export interface RecordLogReader<R> {
  /** The present range of each partition. @throws Error when the log cannot be read, or does not exist */
  bounds(): Promise<readonly LogRange[]>;
  /** The records of a range, in order. @throws UnreadableRecord when one of them cannot be read */
  read(range: LogRange): Promise<readonly ReceivedRecord<R>[]>;
}

/** The log of one kind of records, its source of truth. */
export interface RecordLog<R> extends RecordLogReader<R> {
  /** Resolves when every in-sync replica has it. @throws when that is not certain */
  append(record: R): Promise<Omit<ReceivedRecord<R>, 'record'>>;
}

/** A record of a topic of access as bytes, with its partition and offset. */
export interface LoggedBytes {
  readonly partition: number;
  readonly offset: number;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
}

/**
 * What is read at an offset of a topic; null when the key was deleted, or when a later record of it has replaced an
 * unreadable one.
 */
export interface DecodedRecord<R> {
  readonly partition: number;
  readonly offset: number;
  readonly record: R | null;
}

export interface LogPosition {
  /** Without prefix. */
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
}

/** A record that this release cannot read, and that no later record of its key has replaced. */
export class UnreadableRecord extends Error {
  override readonly name = 'UnreadableRecord';
  readonly position: LogPosition;
  /** Why it cannot be read; contains nothing of the record. */
  readonly reason: string;

  constructor(place: LogPosition, reason: string) {
    const { topic, partition, offset } = place;
    super(
      `a record of ${topic} cannot be read: ${reason} (partition ${partition}, offset ${offset}). ` +
        `Where a newer release wrote it, run that one; else npm run keys -- pass-over --topic ${topic} --partition ${partition} --offset ${offset} skips it`,
    );
    this.position = place;
    this.reason = reason;
  }
}

export interface LogDecoderOptions {
  readonly schemaOf: SchemaSource;
  /** Without prefix. */
  readonly topic: string;
}

/**
 * Creates the decoder of a compacted topic. A record that cannot be read is a fault: skipping it would undo a change,
 * such as the end of a key, or lose what it says. But if a later record of its key follows, it is skipped, since
 * compaction removes it anyway. The generator returns a line for each record, in order, and throws an
 * `UnreadableRecord` after the last one.
 */
export function createLogDecoder<R>(
  codec: Pick<RecordCodec<R>, 'decoderOf'>,
  { schemaOf, topic }: LogDecoderOptions,
): (records: AsyncIterable<LoggedBytes> | Iterable<LoggedBytes>) => AsyncGenerator<DecodedRecord<R>> {
  const readValue = createRecordReader({ schemaOf, createReader: codec.decoderOf });
  return async function* decode(records) {
    const unreadable = new Map<string, UnreadableRecord>();
    for await (const { partition, offset, key, value } of records) {
      const name = `${partition} ${key === null ? `at ${offset}` : key.toString('hex')}`;
      unreadable.delete(name);
      const read = value === null ? null : await readValue(value);
      if (read?.kind === 'unreadable')
        unreadable.set(name, new UnreadableRecord({ topic, partition, offset }, read.reason));
      // Plain objects: the codec's own classes would not equal records from elsewhere.
      yield { partition, offset, record: read?.kind === 'record' ? structuredClone(read.record) : null };
    }
    const [fault] = unreadable.values();
    if (fault !== undefined) throw fault;
  };
}

/** What is read of the log. */
export interface RecordLogReaderParts<R extends Change> {
  readonly kind: RecordKind<R>;
  /** Texts of registered schemas: records may be of another release. */
  readonly schemaOf: SchemaSource;
  /** Of the topic. */
  bounds(): Promise<readonly LogRange[]>;
  /** The bytes of a range of the topic. */
  read(range: LogRange): AsyncIterable<LoggedBytes>;
}

/** What carries the bytes besides. */
export interface RecordLogParts<R extends Change> extends RecordLogReaderParts<R> {
  /** Id under which the schema of the kind is registered. */
  readonly schemaId: number;
  /** Publishes one record with acks=all. */
  send(record: { key: Buffer; value: Buffer }): Promise<{ readonly partition: number; readonly offset: number }>;
}

/** The log in the topic of a kind: keyed by id, values in the Confluent frame. */
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

/** Reads the log in the topic of a kind; each schema is requested once. */
export function createRecordLogReader<R extends Change>(parts: RecordLogReaderParts<R>): RecordLogReader<R> {
  const { kind, schemaOf } = parts;
  const decode = createLogDecoder(kind.codec, { schemaOf, topic: kind.topic });
  return {
    bounds: async () => {
      const bounds = await parts.bounds();
      // An empty answer would look like a log without records.
      if (bounds.length === 0) throw new Error(`there is no topic ${kind.topic}`);
      return bounds;
    },
    read: async (range) => {
      const placed: ReceivedRecord<R>[] = [];
      let next = range.start;
      for await (const { record, partition, offset } of decode(parts.read(range))) {
        next = offset + 1;
        if (record !== null) placed.push({ record, partition, offset });
      }
      // Compaction always keeps the last record. If reading ends before it, it was cut short, and the rest must not
      // count as all there is.
      if (next < range.end) throw new Error(`${kind.topic} was read to ${next} of ${range.end}: try again`);
      return placed;
    },
  };
}
