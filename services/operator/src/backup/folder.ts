/** Backups in a folder: one folder per backup, which gets its name when the manifest is written. */
import { createReadStream, createWriteStream } from 'node:fs';
import { copyFile, link, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { BackupStore } from './backup-store.ts';
import { assertSizes, ID, parseManifest, toText } from './manifest.ts';

const MANIFEST = 'manifest.json';
const UNFINISHED = '.unfinished';

export const openFolder = (parent: string): BackupStore => ({
  async list() {
    const names = await readdir(parent).catch(() => []);
    return names.filter((name) => ID.test(name)).sort();
  },
  async open(id) {
    const location = join(parent, id);
    const path = join(location, MANIFEST);
    const manifest = parseManifest(path, await readFile(path, 'utf8'));
    return {
      location,
      manifest,
      read: ({ file }) => createReadStream(join(location, file)),
      async assertComplete() {
        const sizes = new Map<string, number>();
        for (const name of await readdir(location)) sizes.set(name, (await stat(join(location, name))).size);
        assertSizes({ location, manifest }, sizes);
      },
    };
  },
  async create(id) {
    await mkdir(parent, { recursive: true, mode: 0o700 });
    const stale = (await readdir(parent)).filter((name) => name.endsWith(UNFINISHED));
    for (const name of stale) await rm(join(parent, name), { recursive: true, force: true });
    const folder = join(parent, id + UNFINISHED);
    await mkdir(folder, { mode: 0o700 });
    return {
      toFile: (name) => name,
      write: (file, content) => pipeline(content, createWriteStream(join(folder, file), { mode: 0o600, flush: true })),
      async share(from, file) {
        await linkFile(join(from.location, file), join(folder, file));
        return file;
      },
      async finish(manifest) {
        await writeFile(join(folder, MANIFEST), toText(id, manifest), { mode: 0o600, flush: true });
        const finished = join(parent, id);
        await rename(folder, finished);
        return finished;
      },
    };
  },
});

/** Shares a file between two backups, or copies it where file systems do not share files. */
async function linkFile(from: string, to: string): Promise<void> {
  await link(from, to).catch(() => copyFile(from, to));
}
