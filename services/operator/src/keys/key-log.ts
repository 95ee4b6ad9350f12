import { createKeyLog, type KeyLog } from '@playline/access-keys';
import { accessKeyCodec, type SchemaSource } from '@playline/contracts';
import { type Producer, UnregisteredSchemaFault } from '@playline/stream';
import { awaitStore } from '../await-store.ts';
import { UnreachableError } from '../command.ts';

/** What the key log needs of Kafka and of the registry. */
export interface KeyLogSource {
  readonly producer: Producer;
  /** As it is called on the broker. */
  readonly topic: string;
  /** Id of a schema by its subject and text, and the text of any. */
  readonly schemas: { idOf(subject: string, schema: string): Promise<number>; schemaOf: SchemaSource };
  /** The topic from its first record to its present end. */
  read(): Promise<readonly { key: Buffer | null; value: Buffer | null }[]>;
}

export interface OpenKeyLog extends KeyLog {
  close(): Promise<void>;
}

/**
 * The key log over a producer, which it closes.
 * @throws UnreachableError when brokers or registry do not answer, or the schema of keys is not registered: before
 *   anything has been changed
 */
export async function openKeyLog({ producer, topic, schemas, read }: KeyLogSource): Promise<OpenKeyLog> {
  try {
    const idOfOurs = () => schemas.idOf(`${topic}-value`, accessKeyCodec.schema).catch(toUnreachable);
    await Promise.all([
      awaitStore('Kafka', () => producer.ready()),
      // An answer, whatever it says.
      awaitStore('the schema registry', () =>
        idOfOurs().then(
          () => true,
          (fault: unknown) => fault instanceof UnreachableError,
        ),
      ),
    ]);
    const schemaId = await idOfOurs();
    const send: Parameters<typeof createKeyLog>[0]['send'] = (records) =>
      new Promise((resolve, reject) => {
        const outgoing = records.map((record) => ({ topic, ...record }));
        producer.send(outgoing, (fault) => (fault === null ? resolve() : reject(toUnconfirmed(fault))));
      });
    return {
      ...createKeyLog({ schemaId, schemaOf: schemas.schemaOf, send, read }),
      close: () => producer.close(),
    };
  } catch (error) {
    await producer.close();
    throw error;
  }
}

/** @throws UnreachableError in the place of a schema that is not registered; any other fault as it is */
function toUnreachable(fault: unknown): never {
  throw fault instanceof UnregisteredSchemaFault ? new UnreachableError(fault.message) : fault;
}

/** The records may stand in the log all the same; then the rebuild makes them good. */
function toUnconfirmed({ message }: Error): UnreachableError {
  return new UnreachableError(
    `Kafka did not confirm the change (${message}): keys rebuild, then keys list, tell what holds`,
  );
}
