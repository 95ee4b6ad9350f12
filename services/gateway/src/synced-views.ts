import {
  type AccessKeyRecord,
  type Change,
  COMPARE_EVERY_MS,
  createRecordLogReader,
  IncompleteViewFault,
  type KeyLookup,
  type KeyRecord,
  openKeys,
  type RecordKind,
  type RecordView,
  syncFromLog,
} from '@playline/access-keys';
import { TOPICS } from '@playline/contracts';
import { type ConsentLog, type ConsentStore, catchUpConsents, LaggingStoreFault } from '@playline/people';
import type { Closable, Logger } from '@playline/runtime';
import type { LogReader, SchemaRegistry } from '@playline/stream';
import { openCatchUp } from './catch-up.ts';

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
    readSince: (version) => catchUp.ask(() => view.readSince(version)),
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
    read: (environmentId, identityKey) => catchUp.ask(() => store.read(environmentId, identityKey)),
    close: catchUp.close,
  };
}

/** @throws Error when the topic does not exist, because a missing topic would look like a log without changes */
async function boundsOf(log: SyncParts['log'], topic: string) {
  const bounds = await log.bounds(topic);
  if (bounds.length === 0) throw new Error(`there is no topic ${topic}`);
  return bounds;
}
