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

/** One kind of records, as pages work with it. */
export interface PortalRecords<R extends Change> {
  /**
   * All records, a second old at most, and those of this process' own changes at once.
   * @throws Error while nobody can say what there is
   */
  all(): Promise<readonly R[]>;
  /** False when the log could not be compared with the view the last time, as when a record of it cannot be read. */
  readonly isInSync: boolean;
  /** For changes, which are on the log before they are seen. */
  changedBy(author: Author): RecordStore<R>;
}

/** The log and the registry, as all kinds share them. */
export interface LogParts {
  readonly producer: Pick<Producer, 'sendForOffset'>;
  readonly reader: Pick<LogReader, 'bounds' | 'read'>;
  readonly registry: SchemaRegistry;
  readonly topicPrefix: string;
  readonly logger: Logger;
}

export interface PortalRecordsParts<R extends Change> extends LogParts {
  readonly view: RecordView<R> & Closable;
  /** Milliseconds between two comparisons of the view with the log; `COMPARE_EVERY_MS` when absent. */
  readonly compareEveryMs?: number;
}

/** Records may be this old. An older copy is confirmed when a page asks for it, so a portal that nobody uses asks nothing. */
const AGE_MAX_MS = 1_000;

/** Opens one kind: a copy in this process, changes through the log, and the view in Redis kept in sync with it. Closes the view. */
export function openPortalRecords<R extends Change>(parts: PortalRecordsParts<R>): PortalRecords<R> & Closable {
  const { view, logger, compareEveryMs = COMPARE_EVERY_MS } = parts;
  const log = createLog(parts);
  const copy = openRecordCopy({ view, readEveryMs: 0 });
  const closed = new AbortController();
  let isInSync = true;
  const keepInSync = async () => {
    let wasTold = false;
    while (!closed.signal.aborted) {
      const fault = await syncFromLog({ view, log }).then(
        () => null,
        (error: unknown) => error,
      );
      // One line for each outage.
      if (fault !== null && !wasTold)
        logger.warn({ error: fault }, `${view.kind.name} in Redis cannot be compared with the log`);
      wasTold = fault !== null;
      isInSync = fault === null;
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
          // Whoever made the change sees it on the next page; a look that fails now is made again soon.
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

/** The schema's id is asked for with the first change: pages are shown while the registry is away. */
function createLog<R extends Change>({
  view,
  producer,
  reader,
  registry,
  topicPrefix,
}: PortalRecordsParts<R>): RecordLog<R> {
  const { kind } = view;
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
  const { bounds, read } = logWith(0);
  return {
    bounds,
    read,
    append: async (record) => logWith(await registry.idOf(schemaSubjectOf(topic), kind.codec.schema)).append(record),
  };
}

/** Entries over the log; the schema's id is asked for with the first, as for records. */
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
