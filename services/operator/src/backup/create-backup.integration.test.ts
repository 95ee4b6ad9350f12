import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openOwnDatabase } from '@playline/testkit';
import { expect, it, onTestFinished } from 'vitest';
import { type BackupSources, createBackup } from './create-backup.ts';
import { openFolder } from './folder.ts';
import { closeGate, openGate } from './read-gate.ts';
import { openTargets } from './test/targets.ts';
import { publishTopics } from './topic-files.ts';

/** Opens a database, an empty log, and a folder of backups. */
async function openFixture() {
  const { target, close } = await openOwnDatabase();
  onTestFinished(close);
  const folder = await mkdtemp(join(tmpdir(), 'playline-backups-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const sources = openTargets(target);
  return { sources, folder, store: openFolder(folder) };
}

it('a backup is refused while tables are restored, also if the restore began after the backup', async () => {
  const { sources, store } = await openFixture();
  const { account } = sources;
  const close = () => closeGate(account, { backup: '20260101T000000000Z', run: 'run', phase: 'loading' });
  const closesGate: BackupSources['readTopicSettings'] = async () => {
    await close();
    return new Map();
  };
  const refusal = 'backup 20260101T000000000Z is being restored';
  await expect(createBackup({ ...sources, readTopicSettings: closesGate }, store)).rejects.toThrow(refusal);
  let reads = 0;
  const readCommits = async () => {
    reads++;
    return [];
  };
  await expect(createBackup({ ...sources, offsets: { ...sources.offsets, list: readCommits } }, store)).rejects.toThrow(
    refusal,
  );
  expect([reads, await store.list()]).toEqual([0, []]);
  await openGate(account);
  await createBackup(sources, store);
  expect(await store.list()).toHaveLength(1);
});

it('a damaged backup does not prevent the next one, and none of its records are published', async () => {
  const { sources, folder, store } = await openFixture();
  await createBackup(sources, store);
  const [id = ''] = await store.list();
  const damaged = await store.open(id);
  const { topics } = damaged.manifest;
  const last = topics.at(-1)!;
  await writeFile(join(folder, id, last.file), Buffer.alloc(last.bytes));
  const publishing = publishTopics({
    ...sources,
    backup: damaged,
    topics: topics.map((topic) => ({ ...topic, records: 1, partitions: 0 })),
    toSchemaId: (schema) => schema,
  });
  await expect(publishing).rejects.toThrow(`${last.file} was changed after the backup`);
  for (const damage of [
    () => rm(join(folder, id, last.file)),
    () => writeFile(join(folder, id, 'manifest.json'), '{'),
  ]) {
    await damage();
    const copied = await createBackup({ ...sources, wallClockMs: () => Date.now() - 86_400_000 }, store);
    await (await store.open(copied.location.split('/').at(-1) ?? '')).assertComplete();
    await rm(copied.location, { recursive: true });
  }
});
