import { createRecordReader, type RecordCodec, type SchemaSource } from '@playline/contracts';

/** A record of a topic of access as bytes, with its place. */
export interface LoggedBytes {
  readonly partition: number;
  readonly offset: number;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
}

/**
 * What is read at a place of a topic; null when the key was deleted, or when a later record of it has replaced an
 * unreadable one.
 */
export interface DecodedRecord<R> {
  readonly partition: number;
  readonly offset: number;
  readonly record: R | null;
}

export interface UnreadablePlace {
  /** Without prefix. */
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
}

/** A record that this release cannot read, and that no later record of its key has replaced. */
export class UnreadableRecord extends Error {
  override readonly name = 'UnreadableRecord';
  readonly place: UnreadablePlace;
  /** Why it cannot be read; contains nothing of the record. */
  readonly reason: string;

  constructor(place: UnreadablePlace, reason: string) {
    const { topic, partition, offset } = place;
    super(
      `a record of ${topic} cannot be read: ${reason} (partition ${partition}, offset ${offset}). ` +
        `Where a newer release wrote it, run that one; else npm run keys -- pass-over --topic ${topic} --partition ${partition} --offset ${offset} goes on without it`,
    );
    this.place = place;
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
