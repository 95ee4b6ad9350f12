/** The layout of a backup folder: one folder per backup, with a manifest that is written last. */
import { copyFile, link, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { UsageError } from '../command.ts';

const FORMAT = 1;
const MANIFEST = 'manifest.json';
const UNFINISHED = '.unfinished';
/** The start time, so that names sort by time. */
const ID = /^\d{8}T\d{9}Z$/;

const sum = { bytes: z.number(), sha256: z.string() };

const tableSchema = z.object({
  name: z.string(),
  columns: z.array(z.string()),
  files: z.array(
    z.object({
      ...sum,
      file: z.string(),
      /** `partition_id` in ClickHouse. */
      partition: z.string(),
      /** Changes with the parts of the partition. */
      parts: z.string(),
    }),
  ),
});

const commitSchema = z.object({
  group: z.string(),
  /** Without the prefix. */
  topic: z.string(),
  partition: z.number(),
  committed: z.number(),
  /** The last record before the commit, which shows whether a log is the one of the backup; null if there is none. */
  last: z.object({ offset: z.number(), sha256: z.string() }).nullable(),
  /** Offsets that may have rows from earlier logs. */
  replaced: z.array(z.object({ start: z.number(), end: z.number() })),
});

const topicSchema = z.object({
  /** Without the prefix. */
  topic: z.string(),
  partitions: z.number(),
  /** Exclusive end of the copied records by partition. */
  ends: z.array(z.number()),
  records: z.number(),
  file: z.string(),
  ...sum,
});

const manifestSchema = z.object({
  format: z.literal(FORMAT),
  id: z.string(),
  finishedAt: z.string(),
  /** Checksums of the applied SQL files by name. */
  schema: z.record(z.string(), z.string()),
  /** LINK_TOPIC_GENERATION. */
  generation: z.number(),
  propertyColumns: z.array(z.object({ statement: z.string(), name: z.string() })),
  tables: z.array(tableSchema),
  commits: z.array(commitSchema),
  topics: z.array(topicSchema),
  schemas: z.array(z.object({ id: z.number(), subject: z.string(), schema: z.string() })),
  secrets: z.array(z.object({ name: z.string(), salt: z.string(), fingerprint: z.string() })),
  accounts: z.array(z.string()),
});

export type Manifest = z.infer<typeof manifestSchema>;
export type BackedUpTable = z.infer<typeof tableSchema>;
export type BackedUpFile = BackedUpTable['files'][number];
export type BackedUpCommit = z.infer<typeof commitSchema>;
export type BackedUpTopic = z.infer<typeof topicSchema>;

export interface Backup {
  readonly folder: string;
  readonly manifest: Manifest;
}

export const toBackupId = (atMs: number): string => new Date(atMs).toISOString().replace(/[-:.]/g, '');

/** Returns the finished backups in a folder, oldest first. @throws Error for an unreadable manifest */
export async function listBackups(folder: string): Promise<Backup[]> {
  const names = await readdir(folder).catch(() => []);
  const ids = names.filter((name) => ID.test(name)).sort();
  return Promise.all(ids.map((id) => readBackup(join(folder, id))));
}

async function readBackup(folder: string): Promise<Backup> {
  const path = join(folder, MANIFEST);
  const parsed = manifestSchema.safeParse(JSON.parse(await readFile(path, 'utf8')));
  if (parsed.success) return { folder, manifest: parsed.data };
  throw new Error(`${path} was written by another release: restore with that release.`);
}

/**
 * Finds a backup and the newest backup beside it, which has the most recent erasures.
 * @param path a folder of backups, which selects the newest, or the folder of one backup
 * @throws UsageError if there is no backup
 */
export async function findBackup(path: string): Promise<{ chosen: Backup; newest: Backup }> {
  const name = path.split('/').filter(Boolean).at(-1) ?? '';
  const isOne = ID.test(name);
  const backups = await listBackups(isOne ? join(path, '..') : path);
  const newest = backups.at(-1);
  const chosen = isOne ? backups.find(({ manifest }) => manifest.id === name) : newest;
  if (chosen !== undefined && newest !== undefined) return { chosen, newest };
  throw new UsageError(`${path} contains no finished backup.`);
}

/**
 * Creates a backup folder, which gets its name when `finish` has written the manifest. A killed backup leaves an
 * unfinished folder, which the next backup removes.
 */
export async function createBackupFolder(parent: string, id: string) {
  await mkdir(parent, { recursive: true, mode: 0o700 });
  const stale = (await readdir(parent)).filter((name) => name.endsWith(UNFINISHED));
  for (const name of stale) await rm(join(parent, name), { recursive: true, force: true });
  const folder = join(parent, id + UNFINISHED);
  await mkdir(folder, { mode: 0o700 });
  return {
    folder,
    async finish(manifest: Omit<Manifest, 'format' | 'id'>): Promise<string> {
      const complete: Manifest = { format: FORMAT, id, ...manifest };
      const content = `${JSON.stringify(complete, null, 1)}\n`;
      await writeFile(join(folder, MANIFEST), content, { mode: 0o600, flush: true });
      const finished = join(parent, id);
      await rename(folder, finished);
      return finished;
    },
  };
}

/** Shares a file between two backups, or copies it where file systems do not share files. */
export async function linkFile(from: string, to: string): Promise<void> {
  await link(from, to).catch(() => copyFile(from, to));
}
