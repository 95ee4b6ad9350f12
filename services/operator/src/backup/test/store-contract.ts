/** What every store of backups guarantees. */
import { buffer } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { type Backup, type BackupStore, findBackup } from '../backup-store.ts';
import type { NewManifest } from '../manifest.ts';

export const EMPTY: NewManifest = {
  finishedAt: '2026-01-02T03:04:05.000Z',
  schema: {},
  generation: 0,
  propertyColumns: [],
  tables: [],
  commits: [],
  topics: [],
  topicSettings: [],
  schemas: [],
  secrets: [],
  accounts: [],
};
export const [FIRST, SECOND, THIRD] = ['20260101T000000000Z', '20260102T000000000Z', '20260103T000000000Z'];

export interface StoreFixture {
  /** Location without backups. */
  readonly location: string;
  readonly store: BackupStore;
  /** Deletes a backup as the documentation describes. */
  remove(id: string): Promise<void>;
  /** Replaces the stored file of a backup; null deletes it. */
  damage(id: string, content: string | null): Promise<void>;
}

export async function* toContent(...chunks: readonly (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield Buffer.from(chunk);
}

/** Adds a backup with one table of one file, which is shared if an earlier backup is given. */
export async function addBackup(store: BackupStore, id: string, source: string | Backup): Promise<void> {
  const backup = await store.create(id);
  const at = { partition: 'all', parts: '', bytes: 0, sha256: '' };
  let file = backup.toFile('events.all.native');
  if (typeof source === 'string') await backup.write(file, toContent(source));
  else file = await backup.share(source, fileOf(source).file);
  const bytes = typeof source === 'string' ? source.length : fileOf(source).bytes;
  await backup.finish({ ...EMPTY, tables: [{ name: 'events', columns: [], files: [{ ...at, file, bytes }] }] });
}

const fileOf = ({ manifest }: Backup) => manifest.tables[0]!.files[0]!;

/** Returns the content of the file of a backup. */
export async function readContent(store: BackupStore, id: string): Promise<string> {
  const backup = await store.open(id);
  return (await buffer(backup.read(fileOf(backup)))).toString();
}

export function testStoreContract(openFixture: () => Promise<StoreFixture>): void {
  it('offers the newest finished backup, or the named one together with the erasures of the newest', async () => {
    const { location, store } = await openFixture();
    for (const id of [FIRST, SECOND]) await addBackup(store, id, id);
    const idsOf = async (path: string) => {
      const { chosen, newest } = await findBackup(path, async (opened) => {
        expect(opened).toBe(location);
        return store;
      });
      return [chosen.manifest.id, newest.manifest.id];
    };
    expect(await idsOf(location)).toEqual([SECOND, SECOND]);
    expect(await idsOf(`${location}/${FIRST}`)).toEqual([FIRST, SECOND]);
    expect(await readContent(store, FIRST)).toBe(FIRST);
  });

  it('does not offer a backup that was killed, and stores no manifest of one whose content breaks off', async () => {
    const { location, store } = await openFixture();
    const killed = await store.create(FIRST);
    await killed.write(killed.toFile('events.all.native'), toContent('half'));
    const broken = async function* () {
      yield Buffer.from('half');
      throw new Error('the query failed');
    };
    await expect(killed.write(killed.toFile('links.all.native'), broken())).rejects.toThrow('the query failed');
    await expect(findBackup(location, async () => store)).rejects.toThrow('contains no finished backup');
    await addBackup(store, SECOND, 'complete');
    expect(await store.list()).toEqual([SECOND]);
  });

  it('finds out that a file of a backup is missing or has another size', async () => {
    const { store, damage } = await openFixture();
    await addBackup(store, FIRST, 'content');
    const backup = await store.open(FIRST);
    await backup.assertComplete();
    await damage(FIRST, 'cont');
    await expect(backup.assertComplete()).rejects.toThrow('has 4 bytes instead of 7. Use another backup');
    await damage(FIRST, null);
    await expect(backup.assertComplete()).rejects.toThrow('is missing. Use another backup');
  });

  it('shares unchanged files with later backups, which remain complete if earlier ones are deleted', async () => {
    const { store, remove } = await openFixture();
    await addBackup(store, FIRST, 'unchanged');
    await addBackup(store, SECOND, await store.open(FIRST));
    await remove(FIRST);
    await addBackup(store, THIRD, await store.open(SECOND));
    await remove(SECOND);
    expect(await store.list()).toEqual([THIRD]);
    expect(await readContent(store, THIRD)).toBe('unchanged');
  });
}
