/** Opens the view and the log of any kind of access records. */
import {
  type AccessLogBytes,
  type AuditLog,
  type Author,
  type Change,
  createAuditLog,
  createRecordLog,
  type RecordKind,
} from '@playline/access-keys';
import { auditEntryCodec, type SchemaSource, TOPICS } from '@playline/contracts';
import type { LogReader, Producer } from '@playline/stream';
import { awaitSchemaId, awaitWritable, type Schemas } from '../await-schema.ts';
import { unconfirmed } from '../command.ts';
import type { LogOpeners, RecordOpeners } from '../store-openers.ts';
import type { RecordSources } from './record-access.ts';

/** Opens the clients of topics, and closes them if `create` fails. */
async function openTopics<L>(
  { openLog, createSchemas }: LogOpeners,
  openProducer: () => Promise<Producer>,
  create: (clients: { schemas: Schemas; producer: Producer; reader: LogReader }) => Promise<L>,
): Promise<L & { close(): Promise<void> }> {
  const schemas = await createSchemas();
  const producer = await openProducer();
  const reader = await openLog();
  const close = async () => void (await Promise.all([producer.close(), reader.close()]));
  try {
    return { ...(await create({ schemas, producer, reader })), close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The opened logs throw UnreachableError, before any change, when brokers, registry or schema are missing. */
export function createRecordSources(
  { openRecordView, ...openers }: RecordOpeners,
  { topicPrefix, author }: { readonly topicPrefix: string; readonly author: Author },
): <R extends Change>(kind: RecordKind<R>) => RecordSources<R> {
  return (kind) => ({
    kind,
    author,
    openView: () => openRecordView(kind),
    openLog: () => {
      const topic = topicPrefix + kind.topic;
      return openTopics(openers, () => openers.openProducer(topic), async ({ schemas, producer, reader }) => {
        const schemaId = await awaitWritable({ producer, schemas }, topic, kind.codec.schema);
        const next = `the next command about ${kind.name} completes or discards it`;
        return createRecordLog({
          kind,
          schemaId,
          schemaOf: schemas.schemaOf,
          bounds: () => reader.bounds(topic),
          read: (range) => reader.read({ topic, ...range }),
          send: (record) => producer.sendForOffset({ topic, ...record }).catch(unconfirmed('the change', next)),
        });
      });
    },
  });
}

/** A topic of access records as bytes, and the audit. */
export interface OpenAccessLog {
  readonly log: AccessLogBytes;
  readonly audit: AuditLog;
  readonly schemaId: number;
  readonly schemaOf: SchemaSource;
  close(): Promise<void>;
}

/** Throws as the logs of `createRecordSources`. @param topic without prefix */
export type OpenLogOfTopic = (topic: string, schema: string) => Promise<OpenAccessLog>;

export const createOpenLogOfTopic =
  (openers: Omit<RecordOpeners, 'openRecordView'>, topicPrefix: string): OpenLogOfTopic =>
  (name, schema) => {
    const [topic, audit] = [topicPrefix + name, topicPrefix + TOPICS.audit.name];
    return openTopics(openers, () => openers.openProducer(topic, audit), async ({ schemas, producer, reader }) => {
      const [schemaId, auditId] = await Promise.all([
        awaitWritable({ producer, schemas }, topic, schema),
        awaitSchemaId(schemas, audit, auditEntryCodec.schema),
      ]);
      const log: AccessLogBytes = {
        bounds: () => reader.bounds(topic),
        read: (range) => reader.read({ topic, ...range, isWhole: true }),
        send: (record) => producer.sendForOffset({ topic, ...record }),
      };
      const send = (record: { key: Buffer; value: Buffer }) => producer.sendForOffset({ topic: audit, ...record });
      return { log, audit: createAuditLog({ schemaId: auditId, send }), schemaId, schemaOf: schemas.schemaOf };
    });
  };
