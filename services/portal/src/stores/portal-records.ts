/** One kind of access records: a copy in this process, changes through the log, and a copy in Redis in sync with it. */
import {
  type AuditLog,
  type Author,
  type Change,
  COMPARE_EVERY_MS,
  createAuditLog,
  createRecordLog,
  createRecordStore,
  nextPoll,
  openRecordCopy,
  type RecordLog,
  type RecordStore,
  type RecordView,
  syncFromLog,
} from '@playline/access-keys';
import { auditEntryCodec, schemaSubjectOf, TOPICS } from '@playline/contracts';
import type { Closable, Logger } from '@playline/runtime';
import type { LogReader, Producer, SchemaRegistry } from '@playline/stream';

export interface PortalRecords<R extends Change> {
  /** At most a second old, and with all changes of this process. @throws Error while the records are unknown */
  all(): Promise<readonly R[]>;
  /** False while the copy in Redis cannot be compared with the log. */
  readonly isInSync: boolean;
  /** Changes reach the log before they are visible. */
  changedBy(author: Author): RecordStore<R>;
}

export interface LogParts {
  readonly producer: Pick<Producer, 'sendForOffset'>;
  readonly reader: Pick<LogReader, 'bounds' | 'read'>;
  readonly registry: SchemaRegistry;
  readonly topicPrefix: string;
  readonly logger: Logger;
}

export interface PortalRecordsParts<R extends Change> extends LogParts {
  /** Closed with the records. */
  readonly view: RecordView<R> & Closable;
  /** Milliseconds between two comparisons; `COMPARE_EVERY_MS` when absent. */
  readonly compareEveryMs?: number;
}

/** An older copy is refreshed when a page needs it, so an unused portal sends no queries. */
const AGE_MAX_MS = 1_000;

export function openPortalRecords<R extends Change>(parts: PortalRecordsParts<R>): PortalRecords<R> & Closable {
  const { view, logger, compareEveryMs = COMPARE_EVERY_MS } = parts;
  const log = createLog(parts);
  const copy = openRecordCopy({ view, readEveryMs: 0 });
  const closed = new AbortController();
  let isInSync = true;
  const keepInSync = async () => {
    while (!closed.signal.aborted) {
      try {
        await syncFromLog({ view, log });
        isInSync = true;
      } catch (error) {
        // One line for each outage.
        if (isInSync) logger.warn({ error, records: view.kind.name }, 'records in Redis not compared with the log');
        isInSync = false;
      }
      await nextPoll(compareEveryMs, closed.signal);
    }
  };
  const syncing = keepInSync();
  return {
    get isInSync() {
      return isInSync;
    },
    all: async () => {
      if (copy.ageMs > AGE_MAX_MS) await copy.refresh();
      return copy.records;
    },
    changedBy: (author) => {
      const store = createRecordStore({ view, log }, author);
      return {
        author,
        readAll: store.readAll,
        change: async (decide) => {
          const changed = await store.change(decide);
          // The author sees the change on the next page; a refresh that fails now is repeated soon.
          await copy.refresh().catch(() => {});
          return changed;
        },
      };
    },
    close: async () => {
      closed.abort();
      copy.close();
      await syncing;
      await view.close();
    },
  };
}

/** Reads the schema id with the first change, so that pages work without the registry. */
function createLog<R extends Change>(parts: PortalRecordsParts<R>): RecordLog<R> {
  const { producer, reader, registry, topicPrefix } = parts;
  const { kind } = parts.view;
  const topic = topicPrefix + kind.topic;
  const logWith = (schemaId: number) =>
    createRecordLog({
      kind,
      schemaId,
      schemaOf: registry.schemaOf,
      bounds: () => reader.bounds(topic),
      read: (range) => reader.read({ topic, ...range }),
      send: (record) => producer.sendForOffset({ topic, ...record }),
    });
  return {
    ...logWith(0),
    append: async (record) => logWith(await registry.idOf(schemaSubjectOf(topic), kind.codec.schema)).append(record),
  };
}

/** Reads the schema id with the first entry. */
export function createAudit({ producer, registry, topicPrefix }: Omit<LogParts, 'reader' | 'logger'>): AuditLog {
  const topic = topicPrefix + TOPICS.audit.name;
  const send = (record: { key: Buffer; value: Buffer }) => producer.sendForOffset({ topic, ...record });
  return {
    append: async (entry) => {
      const schemaId = await registry.idOf(schemaSubjectOf(topic), auditEntryCodec.schema);
      await createAuditLog({ schemaId, send }).append(entry);
    },
  };
}
