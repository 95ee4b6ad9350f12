import { createKeyLog, type KeyLog, type LoggedBytes } from '@playline/access-keys';
import { accessKeyCodec } from '@playline/contracts';
import { type Producer, sendAll } from '@playline/stream';
import { awaitWritable, type Schemas } from '../await-schema.ts';
import { unconfirmed } from '../command.ts';

/** What the key log needs of Kafka and of the registry. */
export interface KeyLogSource {
  readonly producer: Producer;
  /** Full name on the broker. */
  readonly topic: string;
  readonly schemas: Schemas;
  /** All records of the topic up to its current end. */
  read(): Promise<readonly LoggedBytes[]>;
}

export interface OpenKeyLog extends KeyLog {
  close(): Promise<void>;
}

/**
 * The key log over a producer, which it closes.
 * @throws UnreachableError when brokers or registry do not answer, or the schema of keys is not registered: before any
 * change
 */
export async function openKeyLog({ producer, topic, schemas, read }: KeyLogSource): Promise<OpenKeyLog> {
  try {
    const schemaId = await awaitWritable({ producer, schemas }, topic, accessKeyCodec.schema);
    const send: Parameters<typeof createKeyLog>[0]['send'] = (records) =>
      sendAll(
        producer,
        records.map((record) => ({ topic, ...record })),
      ).catch(unconfirmed('the change', 'keys rebuild, then keys list, tell what holds'));
    return {
      ...createKeyLog({ schemaId, schemaOf: schemas.schemaOf, send, read }),
      close: () => producer.close(),
    };
  } catch (error) {
    await producer.close();
    throw error;
  }
}
