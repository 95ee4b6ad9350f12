import { type FileHandle, open } from 'node:fs/promises';
import type { ReplicaTarget } from './replicate.ts';

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
