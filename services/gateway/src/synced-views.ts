import { setTimeout as delay } from 'node:timers/promises';
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
import {
  type ConsentLog,
  type ConsentStore,
  createConsentSync,
  LaggingStoreFault,
  MissingFencesFault,
} from '@playline/people';
import type { Closable, Logger } from '@playline/runtime';
import { pause } from '@playline/stores';
import type { LogReader, SchemaRegistry } from '@playline/stream';

/** Shared by all views, so that they use one log reader. */
export interface SyncParts {
  log: Pick<LogReader, 'bounds' | 'read'>;
  registry: Pick<SchemaRegistry, 'schemaOf'>;
  topicPrefix: string;
  logger: Logger;
}

export type OpenRecordView<R extends Change> = RecordView<R> & Closable;

/**
 * Keeps records of one kind in Redis in sync with the log: after a Redis restart that lost records, and after a command
 * that crashed between writing to the log and to Redis. Closing the result also closes the view.
 * @returns the view for readers; reading an incomplete view waits for the sync
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
  let lastPeriod = Number.NEGATIVE_INFINITY;
  const catchUp = openCatchUp({
    name: kind.name.replaceAll('-', ' '),
    run: async () => {
      const { run, completeIn } = await view.status();
      // Periods are aligned, so that all kinds are compared at the same time and share requests.
      const currentPeriod = period();
      if (completeIn === run && currentPeriod === lastPeriod) return null;
      const records = await syncFromLog({ view, log: reader });
      lastPeriod = currentPeriod;
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

/** Keeps the keys in sync with the log. Closing the result also closes the view. */
export function openSyncedKeys(view: OpenRecordView<AccessKeyRecord>, sync: SyncParts) {
  const records = openSyncedRecords(view, sync);
  const keys = openKeys({ view: records });
  return {
    find: keys.find,
    findEnded: keys.findEnded,
    get isEmpty() {
      return keys.isEmpty;
    },
    /** Returns true once this process has loaded all keys. */
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
      // Otherwise a missing topic would look like an empty log.
      if (bounds.length === 0) throw new Error(`the topic ${topic} does not exist`);
      return bounds;
    },
    read: (range) => log.read({ topic, ...range }),
    schemaOf: registry.schemaOf,
  };
  const catchUp = openCatchUp({
    name: 'consents',
    run: createConsentSync(store, consentLog),
    isLagging: (fault) => fault instanceof LaggingStoreFault,
    logger,
  });
  const awaitFences = createFencesWait();
  return {
    apply: store.apply,
    read: (environmentId, identityKey) =>
      awaitFences(() => catchUp.query(() => store.read(environmentId, identityKey))),
    close: catchUp.close,
  };
}

/** Erasers check twice a second whether the data of an environment is on another node of Redis, or on a restarted one. */
const FENCES_MAX_MS = 2_000;
const FENCES_POLL_MS = 100;

/**
 * Creates a function that repeats a query until an eraser has set the fences. After the wait of a query has timed out,
 * others do not wait until one of them succeeds.
 */
export function createFencesWait(): <T>(run: () => Promise<T>) => Promise<T> {
  let areStillMissing = false;
  return async (run) => {
    const endMs = performance.now() + (areStillMissing ? 0 : FENCES_MAX_MS);
    for (;;) {
      try {
        const result = await run();
        areStillMissing = false;
        return result;
      } catch (fault) {
        if (!(fault instanceof MissingFencesFault)) throw fault;
        areStillMissing = performance.now() >= endMs;
        if (areStillMissing) throw fault;
      }
      await delay(FENCES_POLL_MS);
    }
  };
}

interface CatchUpOptions {
  /** The name of the copy in log lines. */
  name: string;
  /**
   * Updates the copy from the log.
   * @returns the number of records read, or null if the copy was complete
   */
  run(): Promise<number | null>;
  /** Returns true if the error means that the copy may be incomplete. */
  isLagging(fault: unknown): boolean;
  logger: Logger;
}

/** Updates a copy in Redis from the log after every restart of Redis. */
export interface CatchUp extends Closable {
  /**
   * Runs a query. If the copy may be incomplete, waits for an update and runs the query again, unless the last update
   * failed or left the copy incomplete (a new deployment has an empty log).
   * @throws the error of the query or of the update
   */
  query<T>(run: () => Promise<T>): Promise<T>;
}

/** Each check is one Redis command that takes ten microseconds. */
const CHECK_INTERVAL_MS = 500;
/** Retry interval while Kafka or Redis is unavailable, or while a new deployment has no keys. */
const RETRY_MS = 1_000;

/** Checks the copy twice a second, and when a query finds it incomplete. Only one update runs at a time. */
export function openCatchUp({ name, run, isLagging, logger }: CatchUpOptions): CatchUp {
  let running: Promise<void> | null = null;
  let hasFailed = false;
  // True if an update left the copy incomplete. Queries then do not wait for another update until one of them succeeds.
  let isStillIncomplete = false;
  const update = () => {
    running ??= run()
      .then(
        (records) => {
          hasFailed = false;
          if (records !== null) logger.info({ copy: name, records }, 'Redis copy synced from the log');
        },
        (fault: unknown) => {
          hasFailed = true;
          throw fault;
        },
      )
      .finally(() => {
        running = null;
      });
    return running;
  };
  const query = async <T>(read: () => Promise<T>): Promise<T> => {
    let updatesMax = 1;
    for (let updates = 0; ; updates++) {
      try {
        const result = await read();
        isStillIncomplete = false;
        return result;
      } catch (fault) {
        if (!isLagging(fault)) throw fault;
        if (updates === 0 && (isStillIncomplete || hasFailed)) throw fault;
        // An update in progress may have started before Redis lost the data.
        if (updates === 0 && running !== null) updatesMax = 2;
        isStillIncomplete = updates === updatesMax;
        if (isStillIncomplete) throw fault;
      }
      await update();
    }
  };
  const closed = new AbortController();
  const watch = async () => {
    let isReported = false;
    while (!closed.signal.aborted) {
      const error = await update().then(
        () => null,
        (fault: unknown) => fault,
      );
      // Logged once per outage.
      if (error !== null && !isReported)
        logger.warn({ error, copy: name }, 'comparing the Redis copy with the log failed; retrying');
      isReported = error !== null;
      if (error === null) await nextPoll(CHECK_INTERVAL_MS, closed.signal);
      else await pause(RETRY_MS, closed.signal);
    }
  };
  void watch();
  return { query, close: () => closed.abort() };
}
