/** Creates a backup while all services are running. */
import { readTopicSchema, schemaSubjectOf, TOPICS, type Topic } from '@playline/contracts';
import type { ClickHouseAccount } from '@playline/stores';
import type { Schemas } from '../await-store.ts';
import type { SqlClient } from '../columns/tables.ts';
import type { Backup, BackupStore } from './backup-store.ts';
import { readPropertyColumns, readSchemaChecksums, readSqlAccounts } from './database.ts';
import { type LogStores, readCommits } from './log-state.ts';
import { type NewManifest, toBackupId } from './manifest.ts';
import { readGate } from './read-gate.ts';
import type { SavedSchema } from './schemas.ts';
import { listSecrets } from './secrets.ts';
import { copyTables } from './tables.ts';
import { copyTopics } from './topic-files.ts';
import { readTopicSettings, type TopicSettingsSource } from './topic-settings.ts';

export interface BackupSources extends LogStores, TopicSettingsSource {
  readonly account: ClickHouseAccount;
  readonly client: SqlClient;
  readonly schemas: Schemas;
  readonly secrets: ReadonlyMap<string, string>;
  readonly generation: number;
  readonly wallClockMs: () => number;
  readonly onProgress: (line: string) => void;
  readonly signal: AbortSignal;
}

export interface CreatedBackup {
  /** Path or URL. */
  readonly location: string;
  readonly manifest: NewManifest;
}

/**
 * Creates a backup. The order makes it complete: every record before a commit has its
 * row in a table that is copied afterwards, and every record after the commit is in a topic that is copied last.
 * @throws Error if a restore is running
 */
export async function createBackup(sources: BackupSources, store: BackupStore): Promise<CreatedBackup> {
  const { client, account, onProgress, signal } = sources;
  await assertNotRestoring(client);
  const previous = await openPrevious(store, onProgress);
  const backup = await store.create(toBackupId(sources.wallClockMs()));
  const commits = await readCommits(sources);
  const propertyColumns = await readPropertyColumns(client);
  const tables = await copyTables({ account, client, backup, previous, onProgress, signal });
  const schemas = await openSchemaList(sources);
  const topics = await copyTopics({ ...sources, commits, backup, onSchema: schemas.add });
  const manifest = {
    finishedAt: new Date(sources.wallClockMs()).toISOString(),
    schema: await readSchemaChecksums(client),
    generation: sources.generation,
    propertyColumns,
    tables,
    commits,
    topics,
    topicSettings: await readTopicSettings(sources),
    schemas: schemas.list(),
    secrets: listSecrets(sources.secrets),
    accounts: await readSqlAccounts(client),
  };
  // A restore that has begun since may have emptied tables before they were copied.
  await assertNotRestoring(client);
  return { location: await backup.finish(manifest), manifest };
}

/** A damaged backup must not prevent the next one, which then shares no files with it. */
async function openPrevious(store: BackupStore, onProgress: (line: string) => void): Promise<Backup | null> {
  const newest = (await store.list()).at(-1);
  if (newest === undefined) return null;
  try {
    const previous = await store.open(newest);
    await previous.assertComplete();
    return previous;
  } catch (fault) {
    onProgress(`all files are copied, because backup ${newest} cannot be used: ${(fault as Error).message}`);
    return null;
  }
}

async function assertNotRestoring(client: SqlClient): Promise<void> {
  const gate = await readGate(client);
  if (gate === null) return;
  throw new Error(`backup ${gate.backup} is being restored: complete the restore, and run the backup again`);
}

/** Lists the schemas that this release writes, and adds those of copied records, which an earlier release may have written. */
async function openSchemaList({ schemas, topicPrefix }: Pick<BackupSources, 'schemas' | 'topicPrefix'>) {
  const saved = new Map<number, SavedSchema>();
  for (const topic of Object.values(TOPICS) as readonly Topic[]) {
    const [schema, subject] = [readTopicSchema(topic), schemaSubjectOf(topicPrefix + topic.name)];
    if (schema === null) continue;
    const id = await schemas.idOf(subject, schema);
    saved.set(id, { id, subject, schema });
  }
  return {
    list: () => [...saved.values()],
    async add(id: number, subject: string) {
      if (saved.has(id)) return;
      const schema = await schemas.schemaOf(id);
      // A record that is not framed, or that no service can read.
      if (schema !== null) saved.set(id, { id, subject, schema });
    },
  };
}
