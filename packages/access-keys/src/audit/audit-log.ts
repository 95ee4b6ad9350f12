import { randomUUID } from 'node:crypto';
import { type AuditEntryRecord, auditEntryCodec, frameRecord } from '@playline/contracts';

/** An action that leaves no other record. */
export type AuditEntry = Omit<AuditEntryRecord, 'entryId' | 'happenedAt' | 'detail'> & {
  /** Never a secret, never an id of a player. */
  readonly detail: Readonly<Record<string, string | number | boolean | null>>;
};

export interface AuditLogParts {
  /** Of the registered schema of entries. */
  readonly schemaId: number;
  /** Publishes to `access.audit.v1` with acks=all. @throws when it is not certain that the record is in the log */
  send(record: { key: Buffer; value: Buffer }): Promise<unknown>;
  readonly wallClockMs?: () => number;
}

export interface AuditLog {
  /**
   * Resolves when every in-sync replica has the entry. Perform the action after that.
   * @throws RangeError for a text that is too long; when it is not certain that the entry is in the log
   */
  append(entry: AuditEntry): Promise<void>;
}

/** More than any entry needs, so that foreign texts are noticed. */
const DETAIL_CHARS_MAX = 4_000;
const TEXT_CHARS_MAX = 200;

/** Entries are keyed by project. */
export function createAuditLog({ schemaId, send, wallClockMs = Date.now }: AuditLogParts): AuditLog {
  return {
    async append(entry) {
      const detail = JSON.stringify(entry.detail);
      if (detail.length > DETAIL_CHARS_MAX) throw new RangeError('the detail of an audit entry is too long');
      const { actor, action, object, address, requestId, projectId, environmentId } = entry;
      const texts = { actor, action, object, address, requestId, projectId, environmentId };
      for (const [name, text] of Object.entries(texts))
        if (text.length > TEXT_CHARS_MAX) throw new RangeError(`the ${name} of an audit entry is too long`);
      const record: AuditEntryRecord = { ...texts, entryId: randomUUID(), happenedAt: wallClockMs(), detail };
      await send({ key: Buffer.from(projectId), value: frameRecord(schemaId, auditEntryCodec.encode(record)) });
    },
  };
}
