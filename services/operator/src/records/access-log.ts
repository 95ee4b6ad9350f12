import { type AccessLogBytes, type AuditLog, createAuditLog } from '@playline/access-keys';
import { auditEntryCodec, type SchemaSource, TOPICS } from '@playline/contracts';
import { awaitSchemaId, awaitWritable } from '../await-schema.ts';
import type { RecordOpeners } from '../store-openers.ts';

/** A topic of access records as bytes, and the audit. */
export interface OpenAccessLog {
  readonly log: AccessLogBytes;
  readonly audit: AuditLog;
  /** Id of the registered schema. */
  readonly schemaId: number;
  readonly schemaOf: SchemaSource;
  close(): Promise<void>;
}

/** @param topic without prefix @param schema of its records */
export type OpenLogOfTopic = (topic: string, schema: string) => Promise<OpenAccessLog>;

/**
 * Creates the function that opens a topic of access records. The function throws UnreachableError when brokers or
 * registry do not answer, or a schema is not registered: before any change.
 */
export function createOpenLogOfTopic(
  { createSchemas, openProducer, openLog }: Omit<RecordOpeners, 'openRecordView'>,
  topicPrefix: string,
): OpenLogOfTopic {
  return async (name, schema) => {
    const [topic, audit] = [topicPrefix + name, topicPrefix + TOPICS.audit.name];
    const schemas = await createSchemas();
    const producer = await openProducer(topic, audit);
    const reader = await openLog();
    const close = async () => {
      await Promise.all([producer.close(), reader.close()]);
    };
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
      const { schemaOf } = schemas;
      return { log, audit: createAuditLog({ schemaId: auditId, send }), schemaId, schemaOf, close };
    } catch (error) {
      await close();
      throw error;
    }
  };
}
