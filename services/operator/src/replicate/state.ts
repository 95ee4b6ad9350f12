import { open, readFile, rename } from 'node:fs/promises';
import { z } from 'zod';

const stateSchema = z.object({
  url: z.string(),
  chain: z.string(),
  cursor: z.string().nullable(),
  mark: z.int().min(0),
});

/** How far a copy has come. */
export interface Reached {
  /** Everything before it stands in the copy; null: nothing does. */
  readonly cursor: string | null;
  /** What the target needs to take back what was written behind it: see `ReplicaTarget`. */
  readonly mark: number;
}

/** Where a job notes how far it has come, so that it goes on there after it was killed. */
export interface StateFile {
  /** Null before the first job. @throws Error for a file that is no state, or the state of another history */
  read(): Promise<Reached | null>;
  /** A killed machine has the state of before, or this one: never half of one. */
  note(reached: Reached): Promise<void>;
}

/** @param history what the state is about: a cursor is good for one chain, of one interface */
export function createStateFile(path: string, { url, chain }: { url: string; chain: string }): StateFile {
  return {
    async read() {
      const text = await readFile(path, 'utf8').catch((fault: NodeJS.ErrnoException) => {
        if (fault.code === 'ENOENT') return null;
        throw fault;
      });
      if (text === null) return null;
      const state = parse(text);
      if (state === null) throw new Error(`${path} is no state of a copy: name another by --state`);
      if (state.url !== url || state.chain !== chain)
        throw new Error(`${path} is the state of ${state.chain} at ${state.url}: name another by --state`);
      return { cursor: state.cursor, mark: state.mark };
    },
    async note(reached) {
      const file = await open(`${path}.new`, 'w');
      try {
        await file.writeFile(`${JSON.stringify({ url, chain, ...reached })}\n`);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(`${path}.new`, path);
    },
  };
}

/** A state that is kept nowhere: every job begins at the beginning. */
export const NO_STATE: StateFile = { read: async () => null, note: async () => {} };

function parse(text: string): z.infer<typeof stateSchema> | null {
  try {
    return stateSchema.safeParse(JSON.parse(text)).data ?? null;
  } catch {
    return null;
  }
}
