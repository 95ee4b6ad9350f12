import { type FileHandle, open } from 'node:fs/promises';
import { parseTimestampMicros } from '@playline/contracts';
import { type ClickHouseAccount, createQueryRows, readRows, sendStatement } from '@playline/stores';
import { awaitClickHouse } from '../await-store.ts';
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
    const target = await options.openTarget(state.saved?.mark ?? null);
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
  const { saved: reached } = state;
  let cursor = reached?.cursor ?? null;
  let mark = reached?.mark ?? 0;
  let copied: Copied = { pages: 0, activities: 0, upTo: null };
  try {
    // From here on the contents of the target are ours.
    if (reached === null) await state.save({ cursor, mark });
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
      await state.save({ cursor, mark });
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

/**
 * Opens a file that gets one line of JSON per version, in the order of the history. Its mark is its length: what was
 * written after the last note is cut off first, so no line is written twice after a kill. Of several lines about one
 * activity, the one with the latest `updated_at` counts.
 * @throws Error when the file is shorter than was noted, has other contents where the note ends, or has contents
 * without a note: then it is not ours to cut
 */
export async function openFileTarget(path: string, mark: number | null): Promise<ReplicaTarget> {
  const file = await open(path, 'a+');
  try {
    const { size } = await file.stat();
    if (mark === null && size > 0)
      throw new Error(`${path} holds something, and no state says what: remove it, or name another by --out`);
    if (size < (mark ?? 0))
      throw new Error(`${path} holds less than its state says: remove both, and copy from the beginning`);
    if (mark !== null && mark > 0 && !(await endsLineAt(file, mark)))
      throw new Error(`${path} is not the file that its state is about: name another by --out and --state`);
    await file.truncate(mark ?? 0);
  } catch (fault) {
    await file.close();
    throw fault;
  }
  let length = mark ?? 0;
  return {
    async write(activities) {
      if ((await file.stat()).size !== length) throw new Error(`somebody else writes to ${path}: the copy ends here`);
      const bytes = Buffer.from(activities.map((activity) => `${JSON.stringify(activity)}\n`).join(''));
      await file.appendFile(bytes);
      await file.datasync();
      length += bytes.length;
      return length;
    },
    close: () => file.close(),
  };
}

async function endsLineAt(file: FileHandle, length: number): Promise<boolean> {
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, length - 1);
  return buffer.toString() === '\n';
}

/** A page has some hundred rows; an insert that takes longer hangs. */
const INSERT_MAX_MS = 60_000;

const toTableSql = (table: string) => `CREATE TABLE IF NOT EXISTS ${table}
(
    chain LowCardinality(String) COMMENT 'Name of the chain',
    id UUID COMMENT 'Which activity',
    updated_at DateTime64(6, 'UTC') COMMENT 'Which version of it: the latest holds',
    indexed_at DateTime64(6, 'UTC') COMMENT 'When the activity was seen on the chain',
    type LowCardinality(String) COMMENT 'mint, burn, transfer, sale, deposit or withdrawal',
    details String COMMENT 'JSON of what belongs to the type',
    blockchain_metadata String COMMENT 'JSON of its place on the chain, or null'
)
ENGINE = ReplacingMergeTree(updated_at)
ORDER BY (chain, id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Copy of a history of activities. Read with FINAL, or the row with the greatest updated_at'`;

/**
 * Opens the table of a copy, and creates it if necessary. It is a folding table with the key chain and id, so a
 * repeated page changes nothing that FINAL shows. Its mark is the time of the last written version, in epoch
 * microseconds: a table that was dropped, emptied or restored from a backup lacks it.
 * @param table name within the account's database: letters, digits and `_`
 * @throws UnreachableError when the server does not answer; Error with its answer, and for a table that has less than
 * was noted
 */
export async function openClickHouseTarget(
  account: ClickHouseAccount,
  { chain, table }: { chain: string; table: string },
  mark: number | null,
): Promise<ReplicaTarget> {
  const query = createQueryRows(account);
  await awaitClickHouse(query);
  await execute(account, toTableSql(table), '');
  const last = `SELECT toUnixTimestamp64Micro(max(updated_at)) FROM ${table} WHERE chain = '${chain}'`;
  const [[held] = []] = await readRows(query(last));
  if (Number(held) < (mark ?? 0))
    throw new Error(`${table} holds less than its state says: remove the state, and copy from the beginning`);
  const columns = 'chain, id, updated_at, indexed_at, type, details, blockchain_metadata';
  return {
    async write(activities) {
      const lines = activities.map((activity) => JSON.stringify(toRow(chain, activity)));
      await execute(account, `INSERT INTO ${table} (${columns}) FORMAT JSONEachRow`, lines.join('\n'));
      return activities
        .map(({ updated_at }) => parseTimestampMicros(updated_at))
        .reduce((most, each) => Math.max(most, each), Number.NEGATIVE_INFINITY);
    },
    close: async () => {},
  };
}

function toRow(chain: string, { id, updated_at, indexed_at, type, details, blockchain_metadata }: Activity) {
  return {
    chain,
    id,
    updated_at,
    indexed_at,
    type,
    details: JSON.stringify(details),
    blockchain_metadata: JSON.stringify(blockchain_metadata),
  };
}

async function execute(account: ClickHouseAccount, statement: string, data: string): Promise<void> {
  const settings = {
    query: statement,
    async_insert: '0',
    date_time_input_format: 'best_effort',
    // Without it, an error after the first bytes of an answer would look like success.
    wait_end_of_query: '1',
  };
  const answer = await sendStatement(account, { body: data, settings, deadlineMs: INSERT_MAX_MS });
  await answer.text();
}
