import { randomUUID } from 'node:crypto';
import { type AuditEntryRecord, auditEntryCodec, frameRecord } from '@playline/contracts';

/** An action that is not recorded anywhere else. */
export type AuditEntry = Omit<AuditEntryRecord, 'entryId' | 'happenedAt' | 'detail'> & {
  /** Must not contain secrets or player ids. */
  readonly detail: Readonly<Record<string, string | number | boolean | null>>;
  /** Set for an entry that is appended again if its confirmation is lost, so that the copies are merged. */
  readonly identity?: Pick<AuditEntryRecord, 'entryId' | 'happenedAt'>;
};

export interface AuditLogParts {
  /** Id of the registered audit entry schema. */
  readonly schemaId: number;
  /** Publishes to `access.audit.v1` with acks=all. @throws unless the broker confirms the record */
  send(record: { key: Buffer; value: Buffer }): Promise<unknown>;
  readonly wallClockMs?: () => number;
}

export interface AuditLog {
  /**
   * Resolves when every in-sync replica has stored the entry. Perform the action only after that.
   * @throws RangeError for a value that is too long; any error of `send`
   */
  append(entry: AuditEntry): Promise<void>;
}

/** More than any legitimate entry needs, so that unexpected content is rejected. */
const DETAIL_CHARS_MAX = 4_000;
const TEXT_CHARS_MAX = 200;

/** Creates an audit log whose entries are keyed by project. */
export function createAuditLog({ schemaId, send, wallClockMs = Date.now }: AuditLogParts): AuditLog {
  return {
    async append(entry) {
      const detail = JSON.stringify(entry.detail);
      if (detail.length > DETAIL_CHARS_MAX) throw new RangeError('the detail of the audit entry is too long');
      const { actor, action, object, address, requestId, projectId, environmentId } = entry;
      const texts = { actor, action, object, address, requestId, projectId, environmentId };
      for (const [name, text] of Object.entries(texts))
        if (text.length > TEXT_CHARS_MAX) throw new RangeError(`the ${name} of the audit entry is too long`);
      const { identity = { entryId: randomUUID(), happenedAt: wallClockMs() } } = entry;
      const record: AuditEntryRecord = { ...texts, ...identity, detail };
      await send({ key: Buffer.from(projectId), value: frameRecord(schemaId, auditEntryCodec.encode(record)) });
    },
  };
}
