import { randomUUID } from 'node:crypto';
import { link, open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { z } from 'zod';

/** Source and target of a copy: a cursor is valid for one chain of one interface, and a mark for one target. */
export interface CopyName {
  readonly url: string;
  readonly chain: string;
  /** Identifies the target: a path, or server, database and table. */
  readonly target: string;
}

const stateSchema = z.object({
  url: z.string(),
  chain: z.string(),
  target: z.string(),
  cursor: z.string().nullable(),
  mark: z.int().min(0),
});

/** Progress of a copy. */
export interface CopyState {
  /** Everything before it is in the copy; null: nothing is. */
  readonly cursor: string | null;
  /** Lets the target undo what was written after it: see `ReplicaTarget`. */
  readonly mark: number;
}

/** Stores the progress of a job, so that it continues there after a kill. */
export interface StateFile {
  /** Progress when it was opened; null before the first job. */
  readonly saved: CopyState | null;
  /** Atomic: after a crash of the machine the file has the earlier progress or this one. */
  save(reached: CopyState): Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens a state, and locks it against other jobs of this machine until it is closed.
 * @throws Error while another job has it; for an invalid file, or the state of another history or target
 */
export async function openStateFile(path: string, name: CopyName): Promise<StateFile> {
  const { url, chain, target } = name;
  const lock = `${path}.lock`;
  const close = () => rm(lock, { force: true });
  await takeLock(lock);
  const standing = await readState(path, name).catch(async (fault: unknown) => {
    await close();
    throw fault;
  });
  return {
    saved: standing,
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

/** A state that is stored nowhere: every job starts at the beginning. */
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
  if (state === null) throw new Error(`${path} is no state of a copy: name another by --state`);
  if (state.url !== url || state.chain !== chain)
    throw new Error(`${path} is the state of ${state.chain} at ${state.url}: name another by --state`);
  if (state.target !== target)
    throw new Error(`${path} is the state of a copy to ${state.target}, not to ${target}: name another by --state`);
  return { cursor: state.cursor, mark: state.mark };
}

/**
 * Creates a lock with our process id, atomically. The lock of a killed job is taken over.
 * @throws Error while its process lives
 */
async function takeLock(path: string): Promise<void> {
  const own = `${path}.${randomUUID()}`;
  await writeFile(own, String(process.pid));
  try {
    while (!(await isMade(own, path))) {
      const pid = Number(await readFile(path, 'utf8').catch(() => Number.NaN));
      if (isAlive(pid))
        throw new Error(`another job copies here, process ${pid}: wait for it. If that is none, remove ${path}`);
      await rm(path, { force: true });
    }
  } finally {
    await rm(own, { force: true });
  }
}

async function isMade(from: string, path: string): Promise<boolean> {
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
    // EPERM means that the process exists, but belongs to another user.
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
