import { randomUUID } from 'node:crypto';
import { type AuditEntryRecord, auditEntryCodec, frameRecord } from '@playline/contracts';

/** What is said of something done that leaves no record of its own behind; times are the log's to give. */
export type AuditEntry = Omit<AuditEntryRecord, 'entryId' | 'happenedAt' | 'detail'> & {
  /** Members that may be shown; never a secret, never an id of a player. */
  readonly detail: Readonly<Record<string, string | number | boolean | null>>;
};

/** What carries the bytes. */
export interface AuditLogParts {
  /** Id under which the schema of entries is registered. */
  readonly schemaId: number;
  /** Publishes one record to `access.audit.v1` with acks=all. @throws when nobody knows whether it stands */
  send(record: { key: Buffer; value: Buffer }): Promise<unknown>;
  /** Epoch milliseconds. Default: the clock of this machine. */
  readonly wallClockMs?: () => number;
}

/** Where what people do is noted: sign-ins, secrets that were shown, erasures and unlinks that were asked for. */
export interface AuditLog {
  /**
   * Resolves when every in-sync replica has the entry. What must not happen unseen is done after that, not before.
   * @throws RangeError for a detail or an object that is too long: an entry is a line, not a store
   * @throws when it is not certain that the entry stands
   */
  append(entry: AuditEntry): Promise<void>;
}

/** More than any entry needs; a text of somebody else that came into one by mistake is found out by it. */
const DETAIL_CHARS_MAX = 4_000;
const TEXT_CHARS_MAX = 200;

/** Entries in `access.audit.v1`, keyed by project, values in the Confluent frame. */
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
