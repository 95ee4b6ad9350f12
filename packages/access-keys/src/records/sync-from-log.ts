import type { Change, LogRange, ReceivedRecord, RecordLogReader } from './record-log.ts';
import { isLater, LogLost, type OffsetMove, type RecordView } from './record-view.ts';

/** How long the view may lack a record from a crashed command. Each comparison costs a request to the brokers. */
export const COMPARE_EVERY_MS = 15_000;

export interface RecordPair<R extends Change, L extends RecordLogReader<R> = RecordLogReader<R>> {
  readonly view: RecordView<R>;
  readonly log: L;
}

/**
 * Applies all records after the view's offsets, such as records from crashed commands or records that Redis has lost.
 * @returns the number of applied records; null if nothing was missing
 * @throws LogLost if the log ends before the view's offset
 */
export async function syncFromLog<R extends Change>({ view, log }: RecordPair<R>): Promise<number | null> {
  if ((await findMissing({ view, log })) === null) return null;
  return view.exclusive(() => syncExclusively({ view, log }));
}

/** `syncFromLog` for callers that already hold the view's lock. */
export async function syncExclusively<R extends Change>({ view, log }: RecordPair<R>): Promise<number | null> {
  const missing = await findMissing({ view, log });
  if (missing === null) return null;
  const changes: ReceivedRecord<R>[] = [];
  for (const range of missing.ranges) for (const each of await log.read(range)) changes.push(each);
  await view.update({ changes, moves: missing.moves, completeIn: missing.run });
  return changes.length;
}

interface Missing {
  readonly run: string;
  readonly ranges: readonly LogRange[];
  readonly moves: readonly OffsetMove[];
}

async function findMissing<R extends Change>({ view, log }: RecordPair<R>): Promise<Missing | null> {
  const { run, completeIn, offsets } = await view.status();
  const outdated: { readonly range: LogRange; readonly move: OffsetMove }[] = [];
  const bounds = await log.bounds();
  for (const { partition, start, end } of bounds) {
    const from = offsets.get(partition) ?? null;
    if (from !== null && from > end) {
      // An empty log cannot restore anything. The view stays readable, and all changes are rejected.
      if (completeIn !== null && bounds.every((each) => each.start === each.end))
        await view.update({ changes: [], moves: [], completeIn: run });
      throw new LogLost(
        `partition ${partition} ends at offset ${end}, but was already read up to ${from}: nothing was changed`,
      );
    }
    if (from === end) continue;
    outdated.push({
      range: { partition, start: Math.max(from ?? start, start), end },
      move: { partition, from, to: end },
    });
  }
  if (outdated.length === 0 && completeIn === run) return null;
  return { run, ranges: outdated.map(({ range }) => range), moves: outdated.map(({ move }) => move) };
}

/**
 * Makes the view equal to the log. Safe to call at any time.
 * @returns the last record for each id, and the number of view records that were not in the log
 * @throws LogLost without changing anything if the log is empty and the view is not
 */
export function rebuildRecords<R extends Change>({
  view,
  log,
}: RecordPair<R>): Promise<{ readonly records: readonly R[]; readonly removed: number }> {
  const { kind } = view;
  return view.exclusive(async () => {
    const { run } = await view.status();
    // Read the view before the log: changes reach the log first, so a record that is missing there was never written.
    const items = await view.readStored();
    const bounds = await log.bounds();
    const logged = new Map<string, ReceivedRecord<R>>();
    for (const range of bounds)
      for (const received of await log.read(range)) {
        const id = kind.idOf(received.record);
        if (isLater(received, logged.get(id))) logged.set(id, received);
      }
    if (logged.size === 0 && items.length > 0)
      throw new LogLost(`the ${kind.name} log is empty, but the view has ${items.length} records: nothing was changed`);
    const changes = [...logged.values()];
    const removed = items.filter((received) => {
      const latest = logged.get(kind.idOf(received.record));
      return latest === undefined || isLater(received, latest);
    });
    const moves = bounds.map(({ partition, end }) => ({ partition, from: null, to: end }));
    await view.restore({ changes, removed, moves, completeIn: run });
    return { records: changes.map(({ record }) => record), removed: removed.length };
  });
}
