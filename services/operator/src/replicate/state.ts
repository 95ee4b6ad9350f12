import { randomUUID } from 'node:crypto';
import { link, open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { z } from 'zod';

/** A cursor is valid for one chain of one URL, and a mark for one target. */
export interface CopyName {
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

export interface CopyState {
  /** Null before the first page. */
  readonly cursor: string | null;
  /** The target's mark: see `ReplicaTarget`. */
  readonly mark: number;
}

/** Stores the progress of a job. */
export interface StateFile {
  /** Progress when it was opened; null before the first job. */
  readonly saved: CopyState | null;
  /** Atomic and durable. */
  save(reached: CopyState): Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens a state, and locks it against other jobs of this machine.
 * @throws Error while another job has it; for an invalid file, or the state of another copy
 */
export async function openStateFile(path: string, name: CopyName): Promise<StateFile> {
  const { url, chain, target } = name;
  const lock = `${path}.lock`;
  const close = () => rm(lock, { force: true });
  await takeLock(lock);
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

/** Creates a lock with the process id atomically. Takes over the lock of a dead process. @throws Error of a live one */
async function takeLock(path: string): Promise<void> {
  const own = `${path}.${randomUUID()}`;
  await writeFile(own, String(process.pid));
  try {
    while (!(await isLinked(own, path))) {
      const pid = Number(await readFile(path, 'utf8').catch(() => Number.NaN));
      if (isAlive(pid))
        throw new Error(`another job copies here (process ${pid}): wait for it, or remove ${path} if it is not a copy`);
      await rm(path, { force: true });
    }
  } finally {
    await rm(own, { force: true });
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
