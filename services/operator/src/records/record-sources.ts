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
import { awaitSchemaId, awaitWritable } from '../await-schema.ts';
import { unconfirmed } from '../command.ts';
import type { RecordOpeners } from '../store-openers.ts';
import type { RecordSources } from './record-access.ts';

/** The opened logs throw UnreachableError, before any change, when brokers, registry or schema are missing. */
export function createRecordSources(
  { openRecordView, openProducer, openLog, createSchemas }: RecordOpeners,
  { topicPrefix, author }: { readonly topicPrefix: string; readonly author: Author },
): <R extends Change>(kind: RecordKind<R>) => RecordSources<R> {
  return (kind) => ({
    kind,
    author,
    openView: () => openRecordView(kind),
    openLog: async () => {
      const topic = topicPrefix + kind.topic;
      const schemas = await createSchemas();
      const producer = await openProducer(topic);
      const reader = await openLog();
      const close = async () => void (await Promise.all([producer.close(), reader.close()]));
      try {
        const schemaId = await awaitWritable({ producer, schemas }, topic, kind.codec.schema);
        const next = `the next command about ${kind.name} completes or discards it`;
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

export function createOpenLogOfTopic(
  { createSchemas, openProducer, openLog }: Omit<RecordOpeners, 'openRecordView'>,
  topicPrefix: string,
): OpenLogOfTopic {
  return async (name, schema) => {
    const [topic, audit] = [topicPrefix + name, topicPrefix + TOPICS.audit.name];
    const schemas = await createSchemas();
    const producer = await openProducer(topic, audit);
    const reader = await openLog();
    const close = async () => void (await Promise.all([producer.close(), reader.close()]));
    try {
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
      return { log, audit: createAuditLog({ schemaId: auditId, send }), schemaId, schemaOf: schemas.schemaOf, close };
    } catch (error) {
      await close();
      throw error;
    }
  };
}
