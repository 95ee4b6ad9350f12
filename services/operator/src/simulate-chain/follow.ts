import type { Position } from '@playline/chain';
import { pauseOrThrow } from '@playline/stores';
import type { ReadHistory } from '../replicate/history.ts';
import type { Ledger } from './ledger.ts';
import { type Replica, toPosition } from './served.ts';
import { readForwards } from './walks.ts';

/** The end of the history before anything of the run was published. */
export interface Beginning {
  readonly cursor: string;
  /** Null for an empty history. */
  readonly last: Position | null;
  readonly places: number;
}

/** Reads the existing history to its end. */
export async function findBeginning(
  readHistory: ReadHistory,
  stop: AbortSignal,
  onProgress: (line: string) => void,
): Promise<Beginning> {
  let [places, last, cursor]: [number, Position | null, string] = [0, null, ''];
  for await (const { activities, nextCursor } of readForwards(readHistory, null, stop)) {
    places += activities.length;
    const end = activities.at(-1);
    if (end !== undefined) last = toPosition(end);
    cursor = nextCursor;
    if (places > 0) onProgress(`${places} places of the history were there before`);
  }
  return { cursor, last, places };
}

export interface FollowOptions {
  readonly readHistory: ReadHistory;
  readonly replica: Replica;
  readonly ledger: Ledger;
  /** Whether more may still be published. */
  readonly isSending: () => boolean;
  /** Maximum time without anything new in the history. */
  readonly idleMaxMs: number;
  readonly onProgress: (line: string) => void;
  readonly stop: AbortSignal;
}

/** Twice a second: 600 of the 1,500 calls that a client address may make in five minutes. */
const POLL_MS = 500;

/**
 * Follows the history until everything acknowledged is served and nothing more comes, or until nothing came for
 * `idleMaxMs`. @returns `previous_cursor` of the end
 */
export async function follow(from: string, options: FollowOptions): Promise<string> {
  const { readHistory, replica, ledger, isSending, idleMaxMs, onProgress, stop } = options;
  let cursor = from;
  let changedAt = performance.now();
  for (let quietEnds = 0; ; ) {
    const isLast = !isSending();
    const page = await readHistory(cursor, stop);
    const now = performance.now();
    for (const activity of page.activities) replica.apply(activity, now);
    const isEnd = page.activities.length === 0 && page.nextCursor === cursor;
    if (!isEnd || !isLast) changedAt = now;
    quietEnds = isEnd && isLast && ledger.pending === 0 ? quietEnds + 1 : 0;
    // Looks a second time, since duplicates would come later.
    if (quietEnds > 1 || now - changedAt > idleMaxMs) return page.previousCursor;
    cursor = page.nextCursor;
    if (!isEnd) continue;
    if (isLast) onProgress(`${ledger.pending} activities are not served yet`);
    await pauseOrThrow(POLL_MS, stop);
  }
}
