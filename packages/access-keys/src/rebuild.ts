import type { KeyLog, KeyLogReader } from './key-log.ts';
import type { KeyRecord, KeyView } from './key-store.ts';
import { LogLost } from './records/view-faults.ts';

/** What a rebuild found and did. */
export interface KeyRebuild {
  /** Keys in the log, ended ones included. */
  readonly keys: number;
  readonly live: number;
  /** Live keys of the view that the log does not know: removed from the view. */
  readonly removed: number;
  /** Second live keys of one environment and kind: ended in the log. A command that died half-way leaves such a key. */
  readonly ended: number;
}

/**
 * Makes the view equal to the log. Safe at any time: it waits for its turn among changes, and a key that is valid in
 * both is never missing meanwhile.
 * @throws LogLost, and changes nothing, when the log is empty and the view is not
 */
export function rebuildKeys(view: KeyView, log: KeyLog): Promise<KeyRebuild> {
  return view.exclusive(() => rebuildInTurn(view, log));
}

/** `rebuildKeys` for a caller that has the turn already. */
export async function rebuildInTurn(view: KeyView, log: KeyLog): Promise<KeyRebuild> {
  const { run } = await view.standing();
  // Read before the log. Every change is written to the log first, so a key that is seen here and missing there never
  // existed.
  const seen = await view.hashes();
  const logged = await log.readAll();
  if (logged.length === 0 && seen.length > 0)
    throw new LogLost(`the key log is empty and the view holds ${seen.length} keys: nothing was changed`);
  const surplus = await findSurplus(view, logged);
  const endedAt = Date.now();
  const records = logged.map((record) => (surplus.has(record) ? { ...record, revokedAt: endedAt } : record));
  const ended = records.filter((_, index) => surplus.has(logged[index]!));
  if (ended.length > 0) await log.append(ended);
  const known = new Set(logged.map(({ hash }) => hash));
  const strangers = seen.filter((hash) => !known.has(hash));
  await view.restore(records, strangers, run);
  const live = records.filter(({ revokedAt }) => revokedAt === null).length;
  return { keys: records.length, live, removed: strangers.length, ended: ended.length };
}

/**
 * Restores what an incomplete view may have lost from the log. Runs after each start of the store, without an operator,
 * so it does only what is certain: it removes nothing from the view and writes nothing to the log, and of several live
 * keys of an environment and kind it applies only the one that a rebuild would keep.
 *
 * Reads the whole log. It is compacted to one record per key, so starting from a place would save nothing.
 * @returns the number of keys applied; null when another process was first, and when neither log nor view ever had a
 * key, which says nothing about keys of callers. With an empty log and a view that was complete, nothing is applied and
 * the view stays in use
 */
export function catchUpKeys(view: KeyView, log: KeyLogReader): Promise<number | null> {
  return view.exclusive(async () => {
    const { run, completeIn } = await view.standing();
    if (completeIn === run) return null;
    const logged = await log.readAll();
    if (logged.length === 0 && completeIn === null) return null;
    const surplus = await findSurplus(view, logged);
    const records = logged.filter((record) => !surplus.has(record));
    await view.restore(records, [], run);
    return records.length;
  });
}

/**
 * Live keys beyond the one that an environment may have of each kind. The one that the view calls live stays, or else
 * the newest. A command that died before it reached the view has shown its key to nobody, so that key can be ended.
 */
async function findSurplus(view: KeyView, logged: readonly KeyRecord[]): Promise<Set<KeyRecord>> {
  const slots = Map.groupBy(
    logged.filter(({ revokedAt }) => revokedAt === null),
    ({ environmentId, kind }) => `${kind} ${environmentId}`,
  );
  const surplus = new Set<KeyRecord>();
  for (const slot of slots.values()) {
    if (slot.length === 1) continue;
    const [first] = slot;
    const inView = await view.findLive(first!.environmentId, first!.kind);
    const kept = slot.find(({ hash }) => hash === inView?.hash) ?? slot.toSorted(byAge).at(-1);
    for (const record of slot) if (record !== kept) surplus.add(record);
  }
  return surplus;
}

/** Oldest first. Keys of the same millisecond are ordered by id, so that every rebuild decides alike. */
function byAge(a: KeyRecord, b: KeyRecord): number {
  return a.createdAt - b.createdAt || (a.keyId < b.keyId ? -1 : 1);
}
