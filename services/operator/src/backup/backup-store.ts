/** Where backups are stored: a folder, or a prefix of a bucket in S3. */
import { UsageError } from '../command.ts';
import { ID, type Manifest, type NewManifest, type StoredFile } from './manifest.ts';

/** Content in chunks, so that no file has to fit into memory. */
export type Content = AsyncIterable<Uint8Array>;

export interface Backup {
  /** Path or URL. */
  readonly location: string;
  readonly manifest: Manifest;
  read(file: StoredFile): Content;
  /** @throws Error if a file is missing or has another size */
  assertComplete(): Promise<void>;
}

/** A backup that `list` does not return before `finish` has written its manifest. */
export interface NewBackup {
  /** Returns the `file` of a new file in the manifest. */
  toFile(name: string): string;
  write(file: string, content: Content): Promise<void>;
  /** Shares a file of an earlier backup. @returns its `file` in the new manifest */
  share(from: Backup, file: string): Promise<string>;
  /** @returns the location of the backup */
  finish(manifest: NewManifest): Promise<string>;
}

export interface BackupStore {
  /** Returns the ids of finished backups, oldest first. */
  list(): Promise<string[]>;
  /** @throws Error for an unreadable manifest */
  open(id: string): Promise<Backup>;
  /** Starts a backup. Removes what killed backups have left. */
  create(id: string): Promise<NewBackup>;
}

/** @param location folder or S3 URL of backups */
export type OpenStore = (location: string) => Promise<BackupStore>;

/**
 * Finds a backup and the newest backup beside it, which has the most recent erasures.
 * @param location of several backups, which selects the newest, or of one backup
 * @throws UsageError if there is no backup
 */
export async function findBackup(location: string, openStore: OpenStore): Promise<{ chosen: Backup; newest: Backup }> {
  const [path = '', name = ''] = /^(.*?)\/*([^/]*)\/*$/.exec(location)?.slice(1) ?? [];
  const isOne = ID.test(name);
  const store = await openStore(isOne ? path || '.' : location);
  const ids = await store.list();
  const newest = ids.at(-1);
  const chosen = isOne ? ids.find((id) => id === name) : newest;
  if (chosen === undefined || newest === undefined) throw new UsageError(`${location} contains no finished backup.`);
  return { chosen: await store.open(chosen), newest: await store.open(newest) };
}
