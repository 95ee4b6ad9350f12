import { accessKeyCodec, frameRecord, type SchemaSource, TOPICS } from '@playline/contracts';
import type { KeyRecord } from './key-store.ts';
import { createLogDecoder, type LoggedBytes } from './records/log-bytes.ts';

/** The source of truth about keys: every change of every key, compacted to the last record of each. */
export interface KeyLog extends KeyLogReader {
  /** Appends all in one send. Resolves when every in-sync replica has them. @throws when that is not certain */
  append(records: readonly KeyRecord[]): Promise<void>;
}

/** The log for readers. */
export interface KeyLogReader {
  /** The present record of every key, in no order. @throws UnreadableRecord, or when the log cannot be read to its end */
  readAll(): Promise<KeyRecord[]>;
}

/** What carries the bytes, and where the schemas are. */
export interface KeyLogParts extends KeyLogReaderParts {
  /** Id under which `accessKeyCodec.schema` is registered. */
  schemaId: number;
  /** Publishes with acks=all; one call is one send. */
  send(records: readonly { key: Buffer; value: Buffer }[]): Promise<void>;
}

export interface KeyLogReaderParts {
  /** Gets registered schemas, because records may come from another release. */
  schemaOf: SchemaSource;
  /** The topic from its first record to its present end; of one partition in the order of the log. */
  read(): Promise<readonly LoggedBytes[]>;
}

/** The log in `access.keys.v1`: keyed by key id, values in the Confluent frame. */
export function createKeyLog({ schemaId, send, ...parts }: KeyLogParts): KeyLog {
  return {
    ...createKeyLogReader(parts),
    append: (records) =>
      send(
        records.map((record) => ({
          key: Buffer.from(record.keyId),
          value: frameRecord(schemaId, accessKeyCodec.encode(record)),
        })),
      ),
  };
}

/** Reads the log in `access.keys.v1`. Gets each schema once. */
export function createKeyLogReader({ schemaOf, read }: KeyLogReaderParts): KeyLogReader {
  const decode = createLogDecoder<KeyRecord>(accessKeyCodec, { schemaOf, topic: TOPICS.accessKeys.name });
  return {
    readAll: async () => {
      const byKeyId = new Map<string, KeyRecord>();
      for await (const { record } of decode(await read())) {
        if (record === null) continue;
        const standing = byKeyId.get(record.keyId);
        // A key that has ended stays ended, whatever is written later.
        if (standing === undefined || standing.revokedAt === null) byKeyId.set(record.keyId, record);
      }
      return [...byKeyId.values()];
    },
  };
}
