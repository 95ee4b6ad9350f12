/** Copies a history: the reference implementation for clients of the public API. */

import { randomUUID } from 'node:crypto';
import { type FileHandle, link, open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { parseTimestampMicros } from '@playline/contracts';
import { type ClickHouseAccount, createQueryRows, readRows, sendStatement } from '@playline/stores';
import { z } from 'zod';
import { awaitClickHouse } from '../await-store.ts';
import type { Activity, ReadHistory } from './history.ts';

/** A cursor is valid for one chain at one URL, and a mark for one target. */
interface CopyName {
  readonly url: string;
  readonly chain: string;
  /** A path, or server, database and table. */
  readonly target: string;
}

const stateSchema = z.object({
  url: z.string(),
  chain: z.string(),
  target: z.string(),
  cursor: z.string().nullable(),
  mark: z.int().min(0),
});

interface CopyState {
  /** Null before the first page. */
  readonly cursor: string | null;
  /** The target's mark: see `ReplicaTarget`. */
  readonly mark: number;
}

/** Stores the progress of a job. */
interface StateFile {
  /** Progress when the state was opened; null before the first job. */
  readonly saved: CopyState | null;
  /** Atomic and durable. */
  save(reached: CopyState): Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens a state, and locks it against other jobs on this machine.
 * @throws Error while another job holds the lock; for an invalid file, or the state of another copy
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

/** Without a state, every job starts at the beginning. */
export async function openNoState(): Promise<StateFile> {
  return { saved: null, save: async () => {}, close: async () => {} };
}

async function readState(path: string, { url, chain, target }: CopyName): Promise<CopyState | null> {
  const text = await readFile(path, 'utf8').catch((fault: NodeJS.ErrnoException) => {
    if (fault.code === 'ENOENT') return null;
    throw fault;
  });
  if (text === null) return null;
  const state = parse(text);
  if (state === null) throw new Error(`${path} is not a state of a copy: use another --state`);
  if (state.url !== url || state.chain !== chain)
    throw new Error(`${path} is the state of ${state.chain} at ${state.url}: use another --state`);
  if (state.target !== target)
    throw new Error(`${path} is the state of a copy to ${state.target}, not to ${target}: use another --state`);
  return { cursor: state.cursor, mark: state.mark };
}

/** Creates a lock with the process id atomically, or takes over the lock of a dead process. @throws Error otherwise */
async function acquireLock(path: string): Promise<void> {
  const ownPath = `${path}.${randomUUID()}`;
  await writeFile(ownPath, String(process.pid));
  try {
    while (!(await isLinked(ownPath, path))) {
      const pid = Number(await readFile(path, 'utf8').catch(() => Number.NaN));
      if (isAlive(pid))
        throw new Error(`another job copies here (process ${pid}): wait for it, or remove ${path} if it is not a copy`);
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
    // The process exists, but belongs to another user.
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
   * Writes a page durably. After a kill before its cursor is saved, the page is written again; of two versions with one
   * `id`, the later `updated_at` applies.
   * @returns a mark of the current contents, which is passed when the target is opened again
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
  /** @param mark as saved with the last page; null for the first job */
  readonly openTarget: (mark: number | null) => Promise<ReplicaTarget>;
  readonly openState: () => Promise<StateFile>;
  /** Waits at the end of the history; null: the job ends there. */
  readonly waitAtEnd: ((stop: AbortSignal) => Promise<void>) | null;
  readonly onPage: (copied: Copied) => void;
  /** Aborted to end the job between pages. */
  readonly stop: AbortSignal;
}

/**
 * Copies the history of a chain from where the last job ended. Rules for a complete copy:
 *
 * 1. Follow only `next_cursor`: no times, no counting.
 * 2. Write a page before its cursor. After a kill in between, it is written again: deduplicate by `id`, `updated_at`.
 * 3. The end is a page without activities whose cursor equals the requested cursor. A short page is not the end.
 * 4. An updated activity appears again, with a later `updated_at`.
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
    // From now on, the copy owns the contents of the target.
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
    // An interruption is a normal end.
    if (!stop.aborted) throw fault;
  }
  return copied;
}

/**
 * Opens a file of one JSON line per version. Its mark is its length: lines written after the last save are truncated.
 * @throws Error when the file does not match the state
 */
export async function openFileTarget(path: string, mark: number | null): Promise<ReplicaTarget> {
  const file = await open(path, 'a+');
  try {
    const { size } = await file.stat();
    if (mark === null && size > 0)
      throw new Error(`${path} is not empty and has no state: remove it, or use another --out`);
    if (size < (mark ?? 0))
      throw new Error(`${path} is shorter than its state: remove both, and copy from the beginning`);
    if (mark !== null && mark > 0 && !(await endsLineAt(file, mark)))
      throw new Error(`${path} does not match its state: use another --out and --state`);
    await file.truncate(mark ?? 0);
  } catch (fault) {
    await file.close();
    throw fault;
  }
  let length = mark ?? 0;
  return {
    async write(activities) {
      if ((await file.stat()).size !== length) throw new Error(`another program writes to ${path}: the copy ends here`);
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
    chain LowCardinality(String) COMMENT 'Name of the chain',
    id UUID COMMENT 'Id of the activity',
    updated_at DateTime64(6, 'UTC') COMMENT 'Version of the activity: the latest applies',
    indexed_at DateTime64(6, 'UTC') COMMENT 'When the activity was first seen on the chain',
    type LowCardinality(String) COMMENT 'mint, burn, transfer, sale, deposit or withdrawal',
    details String COMMENT 'JSON of the fields of the type',
    blockchain_metadata String COMMENT 'JSON of the position on the chain, or null'
)
ENGINE = ReplacingMergeTree(updated_at)
ORDER BY (chain, id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Copy of a history of activities. Read with FINAL, or the row with the greatest updated_at'`;

/**
 * Opens or creates the table of a copy, which deduplicates repeated pages. Its mark is the time of the last version in
 * epoch microseconds.
 * @param table letters, digits and `_`
 * @throws UnreachableError; Error when the table lacks the mark: it was dropped, emptied or restored
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
    throw new Error(`${table} is older than its state: remove the state, and copy from the beginning`);
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
    // Otherwise an error after the first bytes of a response would look like success.
    wait_end_of_query: '1',
  };
  const response = await sendStatement(account, { body: data, settings, deadlineMs: INSERT_MAX_MS });
  await response.text();
}
