import type { Activity, ReadHistory } from './history.ts';
import type { StateFile } from './state.ts';

/** Where a copy of a history goes. */
export interface ReplicaTarget {
  /**
   * Writes the activities of a page. When it resolves they survive a crash. A page may come twice, after a kill between
   * its writing and the note of its cursor: of two versions of an activity, by its `id`, the one with the later
   * `updated_at` holds.
   * @returns a mark of what stands now; the job that goes on gives it back when it opens the target
   */
  write(activities: readonly Activity[]): Promise<number>;
  close(): Promise<void>;
}

/** What a job has copied; not what jobs before it have. */
export interface Copied {
  readonly pages: number;
  readonly activities: number;
  /** `updated_at` of the last one; null without any. */
  readonly upTo: string | null;
}

export interface ReplicateOptions {
  readonly readHistory: ReadHistory;
  /** @param mark what the last page that was noted left; null when no job was here before */
  readonly openTarget: (mark: number | null) => Promise<ReplicaTarget>;
  readonly openState: () => Promise<StateFile>;
  /** At the end of the history it waits, and asks again; null: it ends there. */
  readonly waitAtEnd: ((stop: AbortSignal) => Promise<void>) | null;
  readonly onPage: (copied: Copied) => void;
  /** Aborted when the job shall end: the page under way is written and noted, or not at all. */
  readonly stop: AbortSignal;
}

/**
 * Copies the history of a chain, page by page, and goes on where the last job was noted. These are all the rules that a
 * copy needs to miss nothing:
 *
 * 1. Follow `next_cursor`, and nothing else: no times, no counting.
 * 2. Write a page before its cursor is noted. Killed in between, the page comes again, and folds by `id` and `updated_at`.
 * 3. A short page is not the end. The end is a page without activities whose cursor is the one that was asked with; who
 *    asks again with it later gets what has come since.
 * 4. An update moves an activity to a later place: it comes again, and its `updated_at` says that it is the later one.
 *
 * @throws what the history, the target and the state throw; what is noted until then stands
 */
export async function replicate(options: ReplicateOptions): Promise<Copied> {
  const state = await options.openState();
  try {
    const target = await options.openTarget(state.reached?.mark ?? null);
    try {
      return await copy(state, target, options);
    } finally {
      await target.close();
    }
  } finally {
    await state.close();
  }
}

async function copy(state: StateFile, target: ReplicaTarget, options: ReplicateOptions): Promise<Copied> {
  const { readHistory, waitAtEnd, onPage, stop } = options;
  const { reached } = state;
  let cursor = reached?.cursor ?? null;
  let mark = reached?.mark ?? 0;
  let copied: Copied = { pages: 0, activities: 0, upTo: null };
  try {
    // From here on what the target holds is ours.
    if (reached === null) await state.note({ cursor, mark });
    while (!stop.aborted) {
      const { activities, nextCursor } = await readHistory(cursor, stop);
      const isEnd = activities.length === 0 && nextCursor === cursor;
      if (isEnd && waitAtEnd === null) break;
      if (isEnd) {
        await waitAtEnd?.(stop);
        continue;
      }
      if (activities.length > 0) mark = await target.write(activities);
      cursor = nextCursor;
      await state.note({ cursor, mark });
      copied = {
        pages: copied.pages + 1,
        activities: copied.activities + activities.length,
        upTo: activities.at(-1)?.updated_at ?? copied.upTo,
      };
      onPage(copied);
    }
  } catch (fault) {
    // The end that was asked for, in the midst of a wait.
    if (!stop.aborted) throw fault;
  }
  return copied;
}
