/** Copies an activity history. This is the reference implementation for clients of the public API. */

import { randomUUID } from 'node:crypto';
import { type FileHandle, link, open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { parseTimestampMicros } from '@playline/contracts';
import { type ClickHouseAccount, createQueryRows, readRows, sendStatement } from '@playline/stores';
import { z } from 'zod';
import { awaitClickHouse } from '../await-store.ts';
import type { Activity, ReadHistory } from './history.ts';

const stateSchema = z.object({
  url: z.string(),
  chain: z.string(),
  /** A file path, or the server, database and table. */
  target: z.string(),
  /** Null before the first page. */
  cursor: z.string().nullable(),
  /** The target's mark, see `ReplicaTarget`. */
  mark: z.int().min(0),
});

/** Identifies a copy: a cursor is valid for one chain at one URL, and a mark for one target. */
type CopyName = Pick<z.infer<typeof stateSchema>, 'url' | 'chain' | 'target'>;
type CopyState = Pick<z.infer<typeof stateSchema>, 'cursor' | 'mark'>;

/** Persists the progress of a copy. */
interface StateFile {
  /** Progress when the state was opened, or null for a new copy. */
  readonly saved: CopyState | null;
  /** Saves the progress atomically and durably. */
  save(reached: CopyState): Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens a state file, and locks it against other jobs on this machine.
 * @throws Error when another job holds the lock, or the file is invalid or belongs to another copy
 */
export async function openStateFile(path: string, name: CopyName): Promise<StateFile> {
  const { url, chain, target } = name;
  const lock = `${path}.lock`;
  const close = () => rm(lock, { force: true });
  await acquireLock(lock);
  const saved = await readState(path, name).catch(async (fault: unknown) => {
    await close();
    throw fault;
  });
  return {
    saved,
    async save(reached) {
      const file = await open(`${path}.new`, 'w');
      try {
        await file.writeFile(`${JSON.stringify({ url, chain, target, ...reached })}\n`);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(`${path}.new`, path);
    },
    close,
  };
}

async function readState(path: string, { url, chain, target }: CopyName): Promise<CopyState | null> {
  const text = await readFile(path, 'utf8').catch((fault: NodeJS.ErrnoException) => {
    if (fault.code === 'ENOENT') return null;
    throw fault;
  });
  if (text === null) return null;
  const state = parse(text);
  if (state === null) throw new Error(`${path} is not a state file: pass another --state`);
  if (state.url !== url || state.chain !== chain)
    throw new Error(`${path} is the state of ${state.chain} at ${state.url}: pass another --state`);
  if (state.target !== target)
    throw new Error(`${path} is the state of a copy to ${state.target}, not to ${target}: pass another --state`);
  return { cursor: state.cursor, mark: state.mark };
}

/** Atomically creates a lock file, or takes over the lock of a dead process. @throws Error when the lock is held */
async function acquireLock(path: string): Promise<void> {
  const ownPath = `${path}.${randomUUID()}`;
  await writeFile(ownPath, String(process.pid));
  try {
    while (!(await isLinked(ownPath, path))) {
      const pid = Number(await readFile(path, 'utf8').catch(() => Number.NaN));
      if (isAlive(pid))
        throw new Error(
          `another job is writing this copy (process ${pid}): wait until it has ended, or remove ${path} if no job is running`,
        );
      await rm(path, { force: true });
    }
  } finally {
    await rm(ownPath, { force: true });
  }
}

async function isLinked(from: string, path: string): Promise<boolean> {
  try {
    await link(from, path);
    return true;
  } catch (fault) {
    if ((fault as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw fault;
  }
}

function isAlive(pid: number): boolean {
  try {
    return pid > 0 && process.kill(pid, 0);
  } catch (fault) {
    // EPERM: the process exists, but belongs to another user.
    return (fault as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function parse(text: string): z.infer<typeof stateSchema> | null {
  try {
    return stateSchema.safeParse(JSON.parse(text)).data ?? null;
  } catch {
    return null;
  }
}

export interface ReplicaTarget {
  /**
   * Writes a page durably. A page is written again if the job crashes before the cursor is saved. Of two versions with
   * the same `id`, the version with the later `updated_at` is current.
   * @returns a mark that identifies the current contents, to pass when the target is opened again
   */
  write(activities: readonly Activity[]): Promise<number>;
  close(): Promise<void>;
}

/** The result of one job. */
export interface Copied {
  readonly pages: number;
  readonly activities: number;
  /** `updated_at` of the last activity, or null. */
  readonly upTo: string | null;
}

export interface ReplicateOptions {
  readonly readHistory: ReadHistory;
  /** @param mark saved with the last page, or null for a new copy */
  readonly openTarget: (mark: number | null) => Promise<ReplicaTarget>;
  readonly openState: () => Promise<StateFile>;
  /** Waits at the end of the history; if null, the job ends there. */
  readonly waitAtEnd: ((stop: AbortSignal) => Promise<void>) | null;
  readonly onPage: (copied: Copied) => void;
  /** Aborting ends the job between pages. */
  readonly stop: AbortSignal;
}

/**
 * Copies the activity history of a chain, starting where the last job ended. Rules for a complete copy:
 *
 * 1. Follow only `next_cursor`. Do not use times or counts.
 * 2. Write each page before its cursor. A crash may repeat a page, so deduplicate by `id` and `updated_at`.
 * 3. The history ends at an empty page whose cursor equals the requested cursor. A short page is not the end.
 * 4. An updated activity is returned again with a later `updated_at`.
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
  const { saved } = state;
  let cursor = saved?.cursor ?? null;
  let mark = saved?.mark ?? 0;
  let copied: Copied = { pages: 0, activities: 0, upTo: null };
  try {
    // From this point on, the target belongs to this copy.
    if (saved === null) await state.save({ cursor, mark });
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
    // An interruption is not an error.
    if (!stop.aborted) throw fault;
  }
  return copied;
}

/**
 * Opens a JSON Lines file with one line per version. The mark is the file length: lines after the last save are
 * truncated.
 * @throws Error when the file does not match the state
 */
export async function openFileTarget(path: string, mark: number | null): Promise<ReplicaTarget> {
  const file = await open(path, 'a+');
  try {
    const { size } = await file.stat();
    if (mark === null && size > 0)
      throw new Error(`${path} is not empty and has no state file: remove the file, or pass another --out`);
    if (size < (mark ?? 0))
      throw new Error(`${path} is shorter than its state file records: remove both files to copy from the beginning`);
    if (mark !== null && mark > 0 && !(await endsLineAt(file, mark)))
      throw new Error(`${path} does not match its state file: pass another --out and --state`);
    await file.truncate(mark ?? 0);
  } catch (fault) {
    await file.close();
    throw fault;
  }
  let length = mark ?? 0;
  return {
    async write(activities) {
      if ((await file.stat()).size !== length)
        throw new Error(`another program is writing to ${path}: the copy was stopped`);
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

const INSERT_MAX_MS = 60_000;

const toTableSql = (table: string) => `CREATE TABLE IF NOT EXISTS ${table}
(
    chain LowCardinality(String) COMMENT 'Chain name',
    id UUID COMMENT 'Activity id',
    updated_at DateTime64(6, 'UTC') COMMENT 'Version of the activity: the latest version is current',
    indexed_at DateTime64(6, 'UTC') COMMENT 'Time when the activity was first indexed',
    type LowCardinality(String) COMMENT 'mint, burn, transfer, sale, deposit or withdrawal',
    details String COMMENT 'JSON object with the fields of the activity type',
    blockchain_metadata String COMMENT 'JSON object with the position on the chain, or null'
)
ENGINE = ReplacingMergeTree(updated_at)
ORDER BY (chain, id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Copy of an activity history. Query with FINAL, or select the row with the latest updated_at per id'`;

/**
 * Opens or creates the table of a copy, which deduplicates repeated pages. The mark is the time of the last version, in
 * epoch microseconds.
 * @param table letters, digits and `_`
 * @throws UnreachableError; Error when the table was dropped, emptied or restored since the mark was saved
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
  const [[stored] = []] = await readRows(query(last));
  if (Number(stored) < (mark ?? 0))
    throw new Error(`table ${table} is older than its state file: remove the state file to copy from the beginning`);
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
  const texts = { details: JSON.stringify(details), blockchain_metadata: JSON.stringify(blockchain_metadata) };
  return { chain, id, updated_at, indexed_at, type, ...texts };
}

async function execute(account: ClickHouseAccount, statement: string, data: string): Promise<void> {
  const settings = {
    query: statement,
    async_insert: '0',
    date_time_input_format: 'best_effort',
    // Without this setting, an error after the first response bytes would look like success.
    wait_end_of_query: '1',
  };
  const response = await sendStatement(account, { body: data, settings, deadlineMs: INSERT_MAX_MS });
  await response.text();
}
