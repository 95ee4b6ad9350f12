import {
  type AccessKeyRecord,
  type Change,
  COMPARE_EVERY_MS,
  createRecordLogReader,
  IncompleteViewFault,
  type KeyLookup,
  type KeyRecord,
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

/** What is needed to sync views in Redis from their logs. One reader of the log serves all views. */
export interface SyncParts {
  log: Pick<LogReader, 'bounds' | 'read'>;
  registry: Pick<SchemaRegistry, 'schemaOf'>;
  /** Put before every topic name. */
  topicPrefix: string;
  logger: Logger;
}

/** An open view of records in Redis. */
export type OpenRecordView<R extends Change> = RecordView<R> & Closable;

/**
 * Keeps one kind of records in Redis in sync with its log, for every process that reads them from Redis: after a start
 * of Redis that may have lost some, and after a command that died between log and Redis. Closes the view.
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
      // By periods of the process, so that all kinds are compared at the same moment and share their requests.
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

/** The keys that verifiers use. */
export interface SyncedKeys extends Pick<KeyLookup<KeyRecord>, 'find' | 'isEmpty'>, Closable {
  /** True once this process knows all keys. */
  ready(): Promise<boolean>;
}

/** Opens the keys, and keeps their view in sync with the log. Closes the view. */
export function openSyncedKeys(view: OpenRecordView<AccessKeyRecord>, sync: SyncParts): SyncedKeys {
  const records = openSyncedRecords(view, sync);
  const keys = openKeys({ view: records });
  return {
    find: keys.find,
    get isEmpty() {
      return keys.isEmpty;
    },
    ready: async () => Number.isFinite(keys.ageMs),
    close: async () => {
      keys.close();
      await records.close();
    },
  };
}

/** Keeps the consents in sync with `audience.consents.v1`. */
export function openSyncedConsents(
  store: ConsentStore,
  { log, registry, topicPrefix, logger }: SyncParts,
): Pick<ConsentStore, 'apply' | 'read'> & Closable {
  const topic = topicPrefix + TOPICS.consents.name;
  const consentLog: ConsentLog = {
    bounds: () => boundsOf(log, topic),
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

/** @throws Error when the topic does not exist, because a missing topic would look like a log without changes */
async function boundsOf(log: SyncParts['log'], topic: string) {
  const bounds = await log.bounds(topic);
  if (bounds.length === 0) throw new Error(`there is no topic ${topic}`);
  return bounds;
}

interface CatchUpParts {
  /** The view's content, as log lines name it. */
  name: string;
  /** Reads from the log what Redis may have lost. @returns records read; null when none are known to be missing */
  run(): Promise<number | null>;
  /** True for the fault of a view that may have lost something. */
  isLagging(fault: unknown): boolean;
  logger: Logger;
}

/** Brings a view in Redis up to date after every start of Redis. A timer or a question notices the start. */
export interface CatchUp extends Closable {
  /**
   * Asks the view. If the view may have lost something, the log is read and the question is asked again. The caller
   * does not wait for that where it cannot help: while the log cannot be read, and after a reading that changed nothing
   * (a new deployment has an empty log).
   * @throws whatever the question or the reading of the log throws
   */
  query<T>(question: () => Promise<T>): Promise<T>;
}

/** How soon a start of Redis is noticed without a request. Each check is one command of ten microseconds. */
const CHECK_INTERVAL_MS = 500;
/** Wait after a failed comparison: Kafka or Redis is away, or a new deployment has no key yet. */
const RETRY_MS = 1_000;

/** Checks twice a second, and at a question that Redis cannot answer. The log is read once at a time. */
export function openCatchUp({ name, run, isLagging, logger }: CatchUpParts): CatchUp {
  let running: Promise<void> | null = null;
  let hasFailed = false;
  const once = async () => {
    let records: number | null;
    try {
      records = await run();
    } catch (fault) {
      hasFailed = true;
      throw fault;
    }
    hasFailed = false;
    if (records !== null) logger.info({ records }, `${name} in Redis are in sync with the log again`);
  };
  const catchUp = () => {
    running ??= once().finally(() => {
      running = null;
    });
    return running;
  };
  const closed = new AbortController();
  const watch = async () => {
    let wasTold = false;
    while (!closed.signal.aborted) {
      const error = await catchUp().then(
        () => null,
        (fault: unknown) => fault,
      );
      // One line for each outage, not one a second.
      if (error !== null && !wasTold) logger.warn({ error }, `${name} in Redis cannot be compared with the log`);
      wasTold = error !== null;
      if (error === null) await nextPoll(CHECK_INTERVAL_MS, closed.signal);
      else await pause(RETRY_MS, closed.signal);
    }
  };
  void watch();
  return {
    query: createQuery({ catchUp, isLagging, isRunning: () => running !== null, hasFailed: () => hasFailed }),
    close: () => closed.abort(),
  };
}

interface QueryParts extends Pick<CatchUpParts, 'isLagging'> {
  /** Starts a catch-up, or returns the one that is running. */
  catchUp(): Promise<void>;
  isRunning(): boolean;
  /** Whether the last catch-up failed. */
  hasFailed(): boolean;
}

function createQuery({ catchUp, isLagging, isRunning, hasFailed }: QueryParts): CatchUp['query'] {
  /** True after a reading of the log that changed nothing. Until a question is answered, none waits for a reading. */
  let wasVain = false;
  const answered = async <T>(question: () => Promise<T>): Promise<T> => {
    const answer = await question();
    wasVain = false;
    return answer;
  };
  return async (question) => {
    try {
      return await answered(question);
    } catch (fault) {
      if (!isLagging(fault) || wasVain || hasFailed()) throw fault;
    }
    if (isRunning()) {
      await catchUp();
      try {
        return await answered(question);
      } catch (fault) {
        // The running catch-up may have begun before Redis lost the answer, so the log is read once more.
        if (!isLagging(fault)) throw fault;
      }
    }
    await catchUp();
    try {
      return await answered(question);
    } catch (fault) {
      wasVain = isLagging(fault);
      throw fault;
    }
  };
}
