import {
  createLoggedKeyStore,
  type KeyLog,
  type KeyRebuild,
  type KeyStore,
  type KeyUsage,
  type KeyUse,
  type KeyView,
  rebuildKeys,
  ViewFault,
} from '@playline/access-keys';
import { withStore } from '../await-store.ts';
import { UnreachableError } from '../command.ts';

/** Opens the live view of the keys and their log. */
export interface KeySources {
  openView(): Promise<KeyView & { ready(): Promise<boolean>; close(): Promise<void> }>;
  /** Opened only when needed, since connecting to brokers takes a moment. */
  openLog(): Promise<KeyLog & { close(): Promise<void> }>;
}

/** Opens the records of the use of keys. */
export interface UsageSource {
  openUsage(): Promise<Pick<KeyUsage, 'readKeys'> & { close(): Promise<void> }>;
}

/** Reads the use of keys. @throws UnreachableError when Redis does not answer */
export async function readUse(
  { openUsage }: UsageSource,
  keyIds: readonly string[],
): Promise<ReadonlyMap<string, KeyUse>> {
  const usage = await openUsage();
  try {
    return await usage.readKeys(keyIds);
  } catch {
    throw new UnreachableError('Redis does not say how keys are used: see npm run status');
  } finally {
    await usage.close();
  }
}

/** The use of a key as text of a `list` line. */
export function toUseWords({ lastUsedAt, usesOfHour, refusalsOfHour }: KeyUse): string {
  if (lastUsedAt === null) return 'not seen in use';
  return `last used ${new Date(lastUsedAt).toISOString()}, ${usesOfHour} uses and ${refusalsOfHour} refusals in the last hour`;
}

/** Reads keys from the view, after rebuilding it if it has lost them. */
export function readKeys<T>(sources: KeySources, read: (store: KeyStore) => Promise<T>): Promise<T> {
  return withView(sources, async (view) =>
    (await view.isComplete()) ? read(view) : withLog(sources, (log) => read(createLoggedKeyStore(view, log))),
  );
}

/**
 * Changes keys: in the log first, then in the view.
 * @throws UnreachableError when a store does not answer, also half-way; its message says how to continue
 */
export function changeKeys<T>(sources: KeySources, change: (store: KeyStore) => Promise<T>): Promise<T> {
  return withView(sources, (view) =>
    withLog(sources, async (log) => {
      try {
        return await change(createLoggedKeyStore(view, log));
      } catch (fault) {
        if (!(fault instanceof ViewFault)) throw fault;
        throw new UnreachableError('the key log has the change and Redis may not have it: mend it with keys rebuild');
      }
    }),
  );
}

/** Makes Redis equal to the log. */
export function rebuildView(sources: KeySources): Promise<KeyRebuild> {
  return withView(sources, (view) => withLog(sources, (log) => rebuildKeys(view, log)));
}

const withView = async <T>(
  sources: KeySources,
  work: (view: Awaited<ReturnType<KeySources['openView']>>) => Promise<T>,
): Promise<T> => withStore('Redis', await sources.openView(), work);

async function withLog<T>(sources: KeySources, work: (log: KeyLog) => Promise<T>): Promise<T> {
  const log = await sources.openLog();
  try {
    return await work(log);
  } finally {
    await log.close();
  }
}
