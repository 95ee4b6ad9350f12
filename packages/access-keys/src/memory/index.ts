import type { KeyLog } from '../key-log.ts';
import type { KeyRecord, KeyView } from '../key-store.ts';

export * from './records.ts';
export * from './sessions.ts';
export * from './usage.ts';

/** Key records in memory, for tests and experiments. Always complete. */
export function createMemoryKeyStore(): KeyView {
  const records = new Map<string, KeyRecord>();
  const live = new Map<string, string>();
  const changes: { hash: string; isLive: boolean }[] = [];
  /** Counts how often the list was rebuilt. */
  let list = 0;
  const find = async (hash: string) => records.get(hash) ?? null;
  let turn: Promise<unknown> = Promise.resolve();
  return {
    find,
    findLive: async (environmentId, kind) => find(live.get(slotOf({ kind, environmentId })) ?? ''),
    replace: async (ended, added) => {
      const subject = added ?? ended;
      if (subject === null) return true;
      const slot = slotOf(subject);
      if (live.get(slot) !== ended?.hash) return false;
      for (const record of [ended, added].filter((each) => each !== null)) {
        records.set(record.hash, record);
        changes.push({ hash: record.hash, isLive: record === added });
      }
      if (added === null) live.delete(slot);
      else live.set(slot, added.hash);
      return true;
    },
    amend: async (changed) => {
      if (live.get(slotOf(changed)) !== changed.hash) return false;
      records.set(changed.hash, changed);
      return true;
    },
    list: async (projectId) => keysOf(records, projectId),
    isComplete: async () => true,
    standing: async () => ({ run: 'this process', completeIn: 'this process' }),
    hashes: async () => [...records.keys()],
    changesSince: async (place) => ({
      place: { list: String(list), version: changes.length },
      changes: place?.list === String(list) ? changes.slice(place.version) : null,
    }),
    scanLive: async () => ({ cursor: null, hashes: liveHashesOf(records) }),
    restore: async (restored, strangers) => {
      restoreInto({ records, live }, restored, strangers);
      list++;
    },
    exclusive: (work) => {
      const mine = turn.then(work, work);
      turn = mine.catch(() => {});
      return mine;
    },
  };
}

function keysOf(records: ReadonlyMap<string, KeyRecord>, projectId: string): KeyRecord[] {
  const own = [...records.values()].filter((record) => record.projectId === projectId);
  return own.toSorted((a, b) => a.createdAt - b.createdAt);
}

function liveHashesOf(records: ReadonlyMap<string, KeyRecord>): string[] {
  return [...records.values()].filter(({ revokedAt }) => revokedAt === null).map(({ hash }) => hash);
}

function slotOf({ kind, environmentId }: Pick<KeyRecord, 'kind' | 'environmentId'>): string {
  return `${kind} ${environmentId}`;
}

function restoreInto(
  { records, live }: { records: Map<string, KeyRecord>; live: Map<string, string> },
  restored: readonly KeyRecord[],
  strangers: readonly string[],
): void {
  const isLive = ({ revokedAt }: KeyRecord) => revokedAt === null;
  const free = (record: KeyRecord) => live.get(slotOf(record)) === record.hash && live.delete(slotOf(record));
  for (const hash of strangers) {
    const stranger = records.get(hash);
    records.delete(hash);
    if (stranger !== undefined) free(stranger);
  }
  // Ended keys first: they make room for the live key of their environment.
  for (const record of restored.filter((each) => !isLive(each))) {
    records.set(record.hash, record);
    free(record);
  }
  for (const record of restored.filter(isLive)) {
    const standing = records.get(record.hash);
    if (standing !== undefined && !isLive(standing)) continue;
    records.set(record.hash, record);
    if (!live.has(slotOf(record))) live.set(slotOf(record), record.hash);
  }
}

/** A key log in memory. `appended` has all records in order. */
export function createMemoryKeyLog(): KeyLog & { readonly appended: KeyRecord[] } {
  const appended: KeyRecord[] = [];
  return {
    appended,
    append: async (records) => {
      for (const record of records) appended.push(record);
    },
    readAll: async () => {
      const last = new Map<string, KeyRecord>();
      for (const record of appended) if (last.get(record.keyId)?.revokedAt == null) last.set(record.keyId, record);
      return [...last.values()];
    },
  };
}
