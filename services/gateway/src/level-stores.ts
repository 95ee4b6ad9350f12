import {
  catchUpKeys,
  createKeyLogReader,
  createLiveKeys,
  IncompleteViewFault,
  type KeyView,
  type LiveKeys,
} from '@playline/access-keys';
import { TOPICS } from '@playline/contracts';
import { type ConsentLog, type ConsentStore, catchUpConsents, LaggingStoreFault } from '@playline/people';
import type { Closable, Logger } from '@playline/runtime';
import type { LogReader, SchemaRegistry, StreamRecord } from '@playline/stream';
import { openCatchUp } from './catch-up.ts';

/** What is needed to bring views in Redis up to date with their logs. One reader of the log serves all views. */
export interface LevelParts {
  log: Pick<LogReader, 'bounds' | 'read'>;
  registry: Pick<SchemaRegistry, 'schemaOf'>;
  /** Put before every topic name. */
  topicPrefix: string;
  logger: Logger;
}

type OpenKeys = KeyView & { ready(): Promise<boolean>; close(): Promise<void> };

/** Key look-up for the verifier, and whether the keys were compared with their log and listed. */
export interface LevelKeys extends Closable {
  find: KeyView['find'];
  /** Refreshes itself twice a second, and when asked for a key that it lacks. */
  readonly live: LiveKeys;
  ready(): Promise<boolean>;
}

/** Keeps the view of the keys level with `access.keys.v1`. Closes the view. */
export function openLevelKeys(view: OpenKeys, { log, registry, topicPrefix, logger }: LevelParts): LevelKeys {
  const topic = topicPrefix + TOPICS.accessKeys.name;
  const reader = createKeyLogReader({ schemaOf: registry.schemaOf, read: () => readWhole(log, topic) });
  const live = createLiveKeys(view);
  const isLagging = (fault: unknown) => fault instanceof IncompleteViewFault;
  const isListed = () => live.refresh().then(() => true, passOver(isLagging));
  const catchUp = openCatchUp({
    name: 'access keys',
    // Redis is asked first: the log is read only if something is missing.
    run: async () => {
      if (await isListed()) return null;
      const records = await catchUpKeys(view, reader);
      await isListed();
      return records;
    },
    isLagging,
    logger,
  });
  return {
    find: (hash) => catchUp.ask(() => view.find(hash)),
    live: { ...live, refresh: () => catchUp.ask(live.refresh) },
    ready: async () => catchUp.seen && (await view.ready()),
    close: async () => {
      await catchUp.close();
      await view.close();
    },
  };
}

/** Builds a handler that returns false for faults of a kind. The handler throws all others unchanged. */
function passOver(isOfKind: (fault: unknown) => boolean): (fault: unknown) => false {
  return (fault) => {
    if (isOfKind(fault)) return false;
    throw fault;
  };
}

/** Keeps the consents level with `audience.consents.v1`. */
export function openLevelConsents(
  store: ConsentStore,
  { log, registry, topicPrefix, logger }: LevelParts,
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
async function boundsOf(log: LevelParts['log'], topic: string) {
  const bounds = await log.bounds(topic);
  if (bounds.length === 0) throw new Error(`there is no topic ${topic}`);
  return bounds;
}

async function readWhole(log: LevelParts['log'], topic: string): Promise<StreamRecord[]> {
  const records: StreamRecord[] = [];
  for (const bounds of await boundsOf(log, topic))
    for await (const record of log.read({ topic, ...bounds })) records.push(record);
  return records;
}
