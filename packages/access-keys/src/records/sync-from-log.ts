import type { Change, LogRange, ReceivedRecord, RecordLogReader } from './record-log.ts';
import { isLater, LogLost, type OffsetMove, type RecordView } from './record-view.ts';

/**
 * How often a process compares a view with its log: how long a record may be missing when its command died between log
 * and Redis. Each comparison is a request to the brokers.
 */
export const COMPARE_EVERY_MS = 15_000;

/** A view and the log that it is made of. */
export interface RecordPair<R extends Change, L extends RecordLogReader<R> = RecordLogReader<R>> {
  readonly view: RecordView<R>;
  readonly log: L;
}

/**
 * Applies to a view what the log has after its offsets: changes of commands that died half-way, and everything that a
 * restarted or emptied Redis has lost. Waits for its turn only if something is missing.
 * @returns the number of records applied; null when nothing was missing
 * @throws LogLost when the log ends before the view's offset: then `rebuildRecords` decides
 */
export async function syncFromLog<R extends Change>({ view, log }: RecordPair<R>): Promise<number | null> {
  if ((await findMissing({ view, log })) === null) return null;
  return view.exclusive(() => syncInTurn({ view, log }));
}

/** `syncFromLog` for a caller that has the turn already. */
export async function syncInTurn<R extends Change>({ view, log }: RecordPair<R>): Promise<number | null> {
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
  const behind: { readonly range: LogRange; readonly move: OffsetMove }[] = [];
  const bounds = await log.bounds();
  for (const { partition, start, end } of bounds) {
    const from = offsets.get(partition) ?? null;
    if (from !== null && from > end) {
      // A log without any record can restore nothing. What the view has stays in use, and changes are refused.
      if (completeIn !== null && bounds.every((each) => each.start === each.end))
        await view.update({ changes: [], moves: [], completeIn: run });
      throw new LogLost(
        `the log ends at offset ${end} of partition ${partition}, but was read to ${from} before: nothing was changed`,
      );
    }
    if (from === end) continue;
    behind.push({
      range: { partition, start: Math.max(from ?? start, start), end },
      move: { partition, from, to: end },
    });
  }
  if (behind.length === 0 && completeIn === run) return null;
  return { run, ranges: behind.map(({ range }) => range), moves: behind.map(({ move }) => move) };
}

/** What a rebuild found and did. */
export interface RecordRebuild<R> {
  /** The present record of each id. */
  readonly records: readonly R[];
  /** Records of the view that the log does not have, which were removed. */
  readonly removed: number;
}

/**
 * Makes the view equal to the log, whatever it held. Safe at any time: it waits for its turn among changes, and a
 * record that is in both is never missing.
 * @throws LogLost, and changes nothing, when the log is empty and the view is not
 */
export function rebuildRecords<R extends Change>({ view, log }: RecordPair<R>): Promise<RecordRebuild<R>> {
  const { kind } = view;
  return view.exclusive(async () => {
    const { run } = await view.status();
    // Read before the log. Every change is written to the log first, so a record that is seen here and missing there
    // never existed.
    const held = await view.held();
    const bounds = await log.bounds();
    const logged = new Map<string, ReceivedRecord<R>>();
    for (const range of bounds)
      for (const placed of await log.read(range)) {
        const id = kind.idOf(placed.record);
        if (isLater(placed, logged.get(id))) logged.set(id, placed);
      }
    if (logged.size === 0 && held.length > 0)
      throw new LogLost(
        `the log of ${kind.name} is empty and the view holds ${held.length} of them: nothing was changed`,
      );
    const changes = [...logged.values()];
    const removed = held.filter((placed) => {
      const known = logged.get(kind.idOf(placed.record));
      return known === undefined || isLater(placed, known);
    });
    const moves = bounds.map(({ partition, end }) => ({ partition, from: null, to: end }));
    await view.restore({ changes, removed, moves, completeIn: run });
    return { records: changes.map(({ record }) => record), removed: removed.length };
  });
}
