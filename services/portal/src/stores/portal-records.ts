/** Access records of one kind, read from memory, written through Kafka, with an in-sync copy in Redis. */
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
  /** At most one second old; includes all changes made by this process. @throws Error if the records cannot be read */
  all(): Promise<readonly R[]>;
  /** False while the copy in Redis cannot be compared with Kafka. */
  readonly isInSync: boolean;
  /** Returns a store that records the author of each change. Changes become visible after Kafka has stored them. */
  storeFor(author: Author): RecordStore<R>;
}

export interface LogParts {
  readonly producer: Pick<Producer, 'sendForOffset'>;
  readonly reader: Pick<LogReader, 'bounds' | 'read'>;
  readonly registry: SchemaRegistry;
  readonly topicPrefix: string;
  readonly logger: Logger;
}

export interface PortalRecordsParts<R extends Change> extends LogParts {
  /** Closed together with the records. */
  readonly view: RecordView<R> & Closable;
  /** Interval between comparisons; defaults to `COMPARE_EVERY_MS`. */
  readonly compareEveryMs?: number;
}

/** A copy older than this is refreshed when it is read, so an unused portal sends no queries. */
const AGE_MAX_MS = 1_000;

export function openPortalRecords<R extends Change>(parts: PortalRecordsParts<R>): PortalRecords<R> & Closable {
  const { view, logger, compareEveryMs = COMPARE_EVERY_MS } = parts;
  const log = createLog(parts);
  const copy = openRecordCopy({ view, readEveryMs: 0 });
  const closed = new AbortController();
  let isInSync = true;
  const syncUntilClosed = async () => {
    while (!closed.signal.aborted) {
      try {
        await syncFromLog({ view, log });
        isInSync = true;
      } catch (error) {
        // Logs only the start of an outage.
        if (isInSync) logger.warn({ error, records: view.kind.name }, 'cannot compare Redis with Kafka; retrying');
        isInSync = false;
      }
      await nextPoll(compareEveryMs, closed.signal);
    }
  };
  const syncing = syncUntilClosed();
  return {
    get isInSync() {
      return isInSync;
    },
    all: async () => {
      if (copy.ageMs > AGE_MAX_MS) await copy.refresh();
      return copy.records;
    },
    storeFor: (author) => {
      const store = createRecordStore({ view, log }, author);
      return {
        author,
        readAll: store.readAll,
        change: async (decide) => {
          const changed = await store.change(decide);
          // Makes the change visible on the author's next page. If the refresh fails, the next read retries it.
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

/** Looks up the schema id on the first change, so that pages work without the schema registry. */
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

/** Looks up the schema id on the first entry. */
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
