import { type Author, type Change, createRecordLog, type RecordKind, type RecordLog } from '@playline/access-keys';
import type { LogReader, Producer } from '@playline/stream';
import { awaitWritable, type Schemas } from '../await-schema.ts';
import { unconfirmed } from '../command.ts';
import type { RecordOpeners } from '../store-openers.ts';
import type { RecordSources } from './record-access.ts';

export interface RecordSourcesContext {
  /** TOPIC_PREFIX */
  readonly topicPrefix: string;
  readonly author: Author;
}

/** Creates the openers of the view and the log of any kind of records. */
export function createRecordSources(
  { openRecordView, openProducer, openLog, createSchemas }: RecordOpeners,
  { topicPrefix, author }: RecordSourcesContext,
): <R extends Change>(kind: RecordKind<R>) => RecordSources<R> {
  return (kind) => ({
    kind,
    author,
    openView: () => openRecordView(kind),
    openLog: async () => {
      const topic = topicPrefix + kind.topic;
      const schemas = await createSchemas();
      const producer = await openProducer(topic);
      return openRecordLog(kind, { producer, reader: await openLog(), topic, schemas });
    },
  });
}

/** What a log needs of Kafka and of the registry. */
export interface RecordLogSource {
  readonly producer: Producer;
  readonly reader: LogReader;
  /** Full name on the broker. */
  readonly topic: string;
  readonly schemas: Schemas;
}

export interface OpenRecordLog<R> extends RecordLog<R> {
  close(): Promise<void>;
}

/**
 * The log of a kind over a producer and a reader, which it closes.
 * @throws UnreachableError when brokers or registry do not answer, or the schema is not registered: before any change
 */
export async function openRecordLog<R extends Change>(
  kind: RecordKind<R>,
  { producer, reader, topic, schemas }: RecordLogSource,
): Promise<OpenRecordLog<R>> {
  const close = async () => {
    await Promise.all([producer.close(), reader.close()]);
  };
  try {
    const schemaId = await awaitWritable({ producer, schemas }, topic, kind.codec.schema);
    const next = `the next command about ${kind.name} tells what holds`;
    const log = createRecordLog({
      kind,
      schemaId,
      schemaOf: schemas.schemaOf,
      bounds: () => reader.bounds(topic),
      read: (range) => reader.read({ topic, ...range }),
      send: (record) => producer.sendForOffset({ topic, ...record }).catch(unconfirmed('the change', next)),
    });
    return { ...log, close };
  } catch (error) {
    await close();
    throw error;
  }
}
