import {
  type AccessKeyRecord,
  type Change,
  COMPARE_EVERY_MS,
  createRecordLogReader,
  IncompleteViewFault,
  nextPoll,
  openKeys,
  type RecordKind,
  type RecordView,
  syncFromLog,
} from '@playline/access-keys';
import { TOPICS } from '@playline/contracts';
import { type ConsentLog, type ConsentStore, catchUpConsents, LaggingStoreFault } from '@playline/people';
import type { Closable, Logger } from '@playline/runtime';
import { pause } from '@playline/stores';
import type { LogReader, SchemaRegistry } from '@playline/stream';

/** One reader of the log serves all views. */
export interface SyncParts {
  log: Pick<LogReader, 'bounds' | 'read'>;
  registry: Pick<SchemaRegistry, 'schemaOf'>;
  topicPrefix: string;
  logger: Logger;
}

export type OpenRecordView<R extends Change> = RecordView<R> & Closable;

/**
 * Keeps one kind of records in Redis in sync with its log: after a restart of Redis that lost some, and after a command
 * that died between log and Redis. Closes the view.
 * @returns the view for readers: a read of an incomplete view waits for the sync
 */
export function openSyncedRecords<R extends Change>(
  view: OpenRecordView<R>,
  { log, registry, topicPrefix, logger }: SyncParts,
): Pick<RecordView<R>, 'kind' | 'readSince'> & Closable {
  const kind: RecordKind<R> = view.kind;
  const topic = topicPrefix + kind.topic;
  const reader = createRecordLogReader({
    kind,
    schemaOf: registry.schemaOf,
    bounds: () => log.bounds(topic),
    read: (range) => log.read({ topic, ...range }),
  });
  const period = () => Math.floor(performance.now() / COMPARE_EVERY_MS);
  let comparedIn = Number.NEGATIVE_INFINITY;
  const catchUp = openCatchUp({
    name: kind.name.replaceAll('-', ' '),
    run: async () => {
      const { run, completeIn } = await view.status();
      // By periods of the process, so that all kinds are compared at the same time and share requests.
      const present = period();
      if (completeIn === run && present === comparedIn) return null;
      const records = await syncFromLog({ view, log: reader });
      comparedIn = present;
      return records;
    },
    isLagging: (fault) => fault instanceof IncompleteViewFault,
    logger,
  });
  return {
    kind,
    readSince: (version) => catchUp.query(() => view.readSince(version)),
    close: async () => {
      await catchUp.close();
      await view.close();
    },
  };
}

export type SyncedKeys = ReturnType<typeof openSyncedKeys>;

/** Keeps the keys in sync with the log. Closes the view. */
export function openSyncedKeys(view: OpenRecordView<AccessKeyRecord>, sync: SyncParts) {
  const records = openSyncedRecords(view, sync);
  const keys = openKeys({ view: records });
  return {
    find: keys.find,
    get isEmpty() {
      return keys.isEmpty;
    },
    /** True once this process knows all keys. */
    ready: async () => Number.isFinite(keys.ageMs),
    close: async () => {
      keys.close();
      await records.close();
    },
  };
}

/** Keeps consents in sync with `audience.consents.v1`. */
export function openSyncedConsents(
  store: ConsentStore,
  { log, registry, topicPrefix, logger }: SyncParts,
): Pick<ConsentStore, 'apply' | 'read'> & Closable {
  const topic = topicPrefix + TOPICS.consents.name;
  const consentLog: ConsentLog = {
    bounds: async () => {
      const bounds = await log.bounds(topic);
      // Otherwise a missing topic would appear as a log without changes.
      if (bounds.length === 0) throw new Error(`the topic ${topic} does not exist`);
      return bounds;
    },
    read: (range) => log.read({ topic, ...range }),
    schemaOf: registry.schemaOf,
  };
  const catchUp = openCatchUp({
    name: 'consents',
    run: () => catchUpConsents(store, consentLog),
    isLagging: (fault) => fault instanceof LaggingStoreFault,
    logger,
  });
  return {
    apply: store.apply,
    read: (environmentId, identityKey) => catchUp.query(() => store.read(environmentId, identityKey)),
    close: catchUp.close,
  };
}

interface CatchUpOptions {
  /** For log lines. */
  name: string;
  /**
   * Repairs the copy from the log.
   * @returns records read; null when nothing is known to be missing
   */
  run(): Promise<number | null>;
  /** True for the fault of a copy that may be incomplete. */
  isLagging(fault: unknown): boolean;
  logger: Logger;
}

/** Repairs a copy in Redis after every restart of Redis. */
export interface CatchUp extends Closable {
  /**
   * Runs a query, and again after a repair if the copy may be incomplete. Does not wait for a repair while repairs
   * fail, or after one that changed nothing (a new deployment has an empty log).
   * @throws what the query or the repair throws
   */
  query<T>(run: () => Promise<T>): Promise<T>;
}

/** One command of ten microseconds per check. */
const CHECK_INTERVAL_MS = 500;
/** Kafka or Redis is away, or a new deployment has no key yet. */
const RETRY_MS = 1_000;

/** Checks twice a second, and when a query meets an incomplete copy. Repairs run one at a time. */
export function openCatchUp({ name, run, isLagging, logger }: CatchUpOptions): CatchUp {
  let running: Promise<void> | null = null;
  let lastRepairFailed = false;
  // The last repair changed nothing, so queries do not wait for another until one succeeds.
  let nothingToRecover = false;
  const repair = () => {
    running ??= run()
      .then(
        (records) => {
          lastRepairFailed = false;
          if (records !== null) logger.info({ copy: name, records }, 'copy synced from the log');
        },
        (fault: unknown) => {
          lastRepairFailed = true;
          throw fault;
        },
      )
      .finally(() => {
        running = null;
      });
    return running;
  };
  const query = async <T>(read: () => Promise<T>): Promise<T> => {
    let repairsMax = 1;
    for (let repairs = 0; ; repairs++) {
      try {
        const answer = await read();
        nothingToRecover = false;
        return answer;
      } catch (fault) {
        if (!isLagging(fault)) throw fault;
        if (repairs === 0 && (nothingToRecover || lastRepairFailed)) throw fault;
        // A repair that is running may have started before Redis lost the answer.
        if (repairs === 0 && running !== null) repairsMax = 2;
        nothingToRecover = repairs === repairsMax;
        if (nothingToRecover) throw fault;
      }
      await repair();
    }
  };
  const closed = new AbortController();
  const watch = async () => {
    let isReported = false;
    while (!closed.signal.aborted) {
      const error = await repair().then(
        () => null,
        (fault: unknown) => fault,
      );
      // One line per outage.
      if (error !== null && !isReported) logger.warn({ error, copy: name }, 'comparing the copy with the log failed');
      isReported = error !== null;
      if (error === null) await nextPoll(CHECK_INTERVAL_MS, closed.signal);
      else await pause(RETRY_MS, closed.signal);
    }
  };
  void watch();
  return { query, close: () => closed.abort() };
}
