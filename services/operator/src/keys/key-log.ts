import { createKeyLog, type KeyLog, type LoggedBytes } from '@playline/access-keys';
import { accessKeyCodec } from '@playline/contracts';
import { type Producer, sendAll } from '@playline/stream';
import { awaitSchemaId, type Schemas } from '../await-schema.ts';
import { awaitStore } from '../await-store.ts';
import { UnreachableError } from '../command.ts';

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
    const [schemaId] = await Promise.all([
      awaitSchemaId(schemas, topic, accessKeyCodec.schema),
      awaitStore('Kafka', () => producer.ready()),
    ]);
    const send: Parameters<typeof createKeyLog>[0]['send'] = (records) =>
      sendAll(
        producer,
        records.map((record) => ({ topic, ...record })),
      ).catch((fault: Error) => Promise.reject(toUnconfirmed(fault)));
    return {
      ...createKeyLog({ schemaId, schemaOf: schemas.schemaOf, send, read }),
      close: () => producer.close(),
    };
  } catch (error) {
    await producer.close();
    throw error;
  }
}

/** The records may be in the log nevertheless; a rebuild then applies them. */
function toUnconfirmed({ message }: Error): UnreachableError {
  return new UnreachableError(
    `Kafka did not confirm the change (${message}): keys rebuild, then keys list, tell what holds`,
  );
}
