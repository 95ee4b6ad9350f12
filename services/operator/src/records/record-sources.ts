import {
  type Author,
  type Change,
  createRecordLog,
  type RecordKind,
  type RecordLog,
  type RecordView,
} from '@playline/access-keys';
import type { LogReader, Producer } from '@playline/stream';
import type { Addresses, KafkaAddress, RedisAddress, RegistryAddress } from '../addresses.ts';
import { awaitSchemaId, type Schemas } from '../await-schema.ts';
import { awaitStore } from '../await-store.ts';
import { UnreachableError } from '../command.ts';
import type { RecordSources } from './record-access.ts';

/** Opens the stores of a deployment. */
export interface RecordAdapters {
  readonly openRedisRecords: <R extends Change>(
    kind: RecordKind<R>,
    options: RedisAddress,
  ) => Promise<RecordView<R> & { ready(): Promise<boolean>; close(): Promise<void> }>;
  readonly openProducer: (options: KafkaAddress & { clientId: string; topics: readonly string[] }) => Promise<Producer>;
  readonly openLogReader: (options: KafkaAddress & { clientId: string }) => LogReader;
  readonly createSchemaRegistry: (options: RegistryAddress) => Schemas;
}

export interface RecordSourcesContext {
  readonly addresses: Pick<Addresses, 'redis' | 'kafka' | 'registry'>;
  readonly topicPrefix: string;
  readonly author: Author;
}

/** Builds what opens the view and the log of any kind of records. */
export function createRecordSources(
  { openRedisRecords, ...adapters }: RecordAdapters,
  { addresses, topicPrefix, author }: RecordSourcesContext,
): <R extends Change>(kind: RecordKind<R>) => RecordSources<R> {
  return (kind) => ({
    kind,
    author,
    openView: () => openRedisRecords(kind, addresses.redis()),
    openLog: async () => {
      const kafka = { ...addresses.kafka(), clientId: 'operator' };
      const topic = topicPrefix + kind.topic;
      const schemas = adapters.createSchemaRegistry(addresses.registry());
      const producer = await adapters.openProducer({ ...kafka, topics: [topic] });
      return openRecordLog(kind, { producer, reader: adapters.openLogReader(kafka), topic, schemas });
    },
  });
}

/** What a log needs of Kafka and of the registry. */
export interface RecordLogSource {
  readonly producer: Producer;
  readonly reader: LogReader;
  /** As it is called on the broker. */
  readonly topic: string;
  readonly schemas: Schemas;
}

export interface OpenRecordLog<R> extends RecordLog<R> {
  close(): Promise<void>;
}

/**
 * The log of a kind over a producer and a reader, which it closes.
 * @throws UnreachableError when brokers or registry do not answer, or the schema is not registered: before anything has
 *   been changed
 */
export async function openRecordLog<R extends Change>(
  kind: RecordKind<R>,
  { producer, reader, topic, schemas }: RecordLogSource,
): Promise<OpenRecordLog<R>> {
  const close = async () => {
    await Promise.all([producer.close(), reader.close()]);
  };
  try {
    const [schemaId] = await Promise.all([
      awaitSchemaId(schemas, topic, kind.codec.schema),
      awaitStore('Kafka', () => producer.ready()),
    ]);
    const log = createRecordLog({
      ...{ kind, schemaId, schemaOf: schemas.schemaOf },
      bounds: () => reader.bounds(topic),
      read: (range) => reader.read({ topic, ...range }),
      send: (record) =>
        producer.sendPlaced({ topic, ...record }).catch(({ message }: Error) => {
          throw new UnreachableError(
            `Kafka did not confirm the change (${message}): the next command about ${kind.name} tells what holds`,
          );
        }),
    });
    return { ...log, close };
  } catch (error) {
    await close();
    throw error;
  }
}
