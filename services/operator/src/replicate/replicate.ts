import type { Activity, ReadHistory } from './history.ts';
import type { StateFile } from './state.ts';

/** Target of a copy of a history. */
export interface ReplicaTarget {
  /**
   * Writes the activities of a page, durably when it resolves. After a kill between writing a page and noting its
   * cursor the page comes again: of two versions of an activity, by its `id`, the one with the later `updated_at`
   * counts.
   * @returns a mark of the current contents; the next job passes it when it opens the target
   */
  write(activities: readonly Activity[]): Promise<number>;
  close(): Promise<void>;
}

/** What a job has copied; earlier jobs do not count. */
export interface Copied {
  readonly pages: number;
  readonly activities: number;
  /** `updated_at` of the last one; null without any. */
  readonly upTo: string | null;
}

export interface ReplicateOptions {
  readonly readHistory: ReadHistory;
  /** @param mark as noted with the last page; null when there was no job before */
  readonly openTarget: (mark: number | null) => Promise<ReplicaTarget>;
  readonly openState: () => Promise<StateFile>;
  /** Waits at the end of the history, before asking again; null: the job ends there. */
  readonly waitAtEnd: ((stop: AbortSignal) => Promise<void>) | null;
  readonly onPage: (copied: Copied) => void;
  /** Aborted to end the job: the page under way is written and noted, or not at all. */
  readonly stop: AbortSignal;
}

/**
 * Copies the history of a chain, page by page, from where the last job ended. These are all the rules that a copy needs
 * to miss nothing:
 *
 * 1. Follow `next_cursor`, and nothing else: no times, no counting.
 * 2. Write a page before noting its cursor. After a kill in between it comes again, and folds by `id` and `updated_at`.
 * 3. A short page is not the end. The end is a page without activities whose cursor is the requested one; asking again
 * with it later returns what has come since.
 * 4. An update moves an activity to a later place: it comes again, with a later `updated_at`.
 *
 * @throws what the history, the target and the state throw; what was noted before stays
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
    // From here on the contents of the target are ours.
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
    // An interruption during a wait is a normal end.
    if (!stop.aborted) throw fault;
  }
  return copied;
}
