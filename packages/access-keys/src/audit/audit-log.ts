import { randomUUID } from 'node:crypto';
import { type AuditEntryRecord, auditEntryCodec, frameRecord } from '@playline/contracts';

/** An entry about an action that leaves no other record. The log adds id and time. */
export type AuditEntry = Omit<AuditEntryRecord, 'entryId' | 'happenedAt' | 'detail'> & {
  /** Only members that may be shown: never a secret, never an id of a player. */
  readonly detail: Readonly<Record<string, string | number | boolean | null>>;
};

/** What carries the bytes. */
export interface AuditLogParts {
  /** Id under which the schema of entries is registered. */
  readonly schemaId: number;
  /**
   * Publishes one record to `access.audit.v1` with acks=all.
   * @throws when it is not certain that the record is in the log
   */
  send(record: { key: Buffer; value: Buffer }): Promise<unknown>;
  /** Epoch milliseconds. Default: the clock of this machine. */
  readonly wallClockMs?: () => number;
}

/** Records what people do: sign-ins, secrets that were shown, requested erasures and unlinks. */
export interface AuditLog {
  /**
   * Resolves when every in-sync replica has the entry. An action that must leave a trace is done after that, not
   * before.
   * @throws RangeError when the detail or the object is too long
   * @throws when it is not certain that the entry is in the log
   */
  append(entry: AuditEntry): Promise<void>;
}

/** More than any entry needs. A foreign text that gets into one by mistake is noticed by its length. */
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
