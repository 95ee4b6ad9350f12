import { type AuditLog, createAuditLog } from '@playline/access-keys';
import { auditEntryCodec, schemaSubjectOf, TOPICS } from '@playline/contracts';
import type { LogParts } from './portal-records.ts';

/** Entries over the log; the schema's id is asked for with the first, as for records. */
export function createAudit({ producer, registry, topicPrefix }: Omit<LogParts, 'reader' | 'logger'>): AuditLog {
  const topic = topicPrefix + TOPICS.audit.name;
  const send = (record: { key: Buffer; value: Buffer }) => producer.sendPlaced({ topic, ...record });
  return {
    append: async (entry) => {
      const schemaId = await registry.idOf(schemaSubjectOf(topic), auditEntryCodec.schema);
      await createAuditLog({ schemaId, send }).append(entry);
    },
  };
}
