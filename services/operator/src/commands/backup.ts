import { type ClickHouseAccount, createQueryRows, onEachNode } from '@playline/stores';
import type { Addresses } from '../addresses.ts';
import { runCommand } from '../app.ts';
import { awaitClickHouse, awaitLog, awaitStore, withScope } from '../await-store.ts';
import { type BackupStore, findBackup } from '../backup/backup-store.ts';
import { createBackup } from '../backup/create-backup.ts';
import { openFolder } from '../backup/folder.ts';
import { finishErasures, loadBackup, planRestore, type RestoreTargets } from '../backup/restore-backup.ts';
import { readSecrets } from '../backup/secrets.ts';
import { countRows } from '../backup/tables.ts';
import { createSqlClient } from '../columns/tables.ts';
import {
  type CreateCommand,
  confirm,
  EXIT,
  endWith,
  type JsonOption,
  jsonCommand,
  plural,
  printResult,
  type Terminal,
  UsageError,
  yesOption,
} from '../command.ts';
import type { OperatorConfig } from '../config.ts';
import type { StoreOpeners } from '../store-openers.ts';

export interface BackupContext
  extends Pick<
    StoreOpeners,
    | 'openLog'
    | 'openOffsets'
    | 'openProducer'
    | 'createSchemas'
    | 'createRegistrar'
    | 'openPeople'
    | 'openErasureRecords'
    | 'openErasureRows'
    | 'readTopicSettings'
  > {
  readonly addresses: Pick<Addresses, 'clickhouse'>;
  readonly config: Pick<OperatorConfig, 'TOPIC_PREFIX' | 'LINK_TOPIC_GENERATION'>;
  readonly folder: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The commands that contain `rebuild`. */
  readonly loadRebuild: () => Promise<readonly CreateCommand[]>;
  readonly wallClockMs: () => number;
  readonly stop: AbortSignal;
}

const ABOUT_S3 = `
S3 uses AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN and AWS_REGION, or the role of the machine. For other
stores with this API, set AWS_ENDPOINT_URL_S3.
`;

const BACKUP = `
Copies tables, topics that no table contains, committed offsets and schemas to a folder or to S3. Services keep running.
Unchanged table partitions share their files with the previous backup in the same location. Secrets and passwords are
not copied; the backup lists fingerprints, with which a restore compares them.
${ABOUT_S3}
Exit codes: 0 success, 1 failure, 2 invalid arguments, 3 store not responding.`;

const RESTORE = `
Replaces all tables. Readers are refused until everyone whose erasure was requested before or after the backup is erased.
Stop all services first. After an interruption, run the command again.

With the log of the backup, the services read all later records again. With a new log, records after the backup are lost.
The location contains backups, of which the newest is selected, or is one backup.
${ABOUT_S3}
Exit codes: 0 success, 1 failure or declined, 2 invalid arguments, 3 store not responding.`;

/** Creates `backup` and `restore`. */
export const createBackupCommands = (context: BackupContext): CreateCommand[] => [
  (terminal) =>
    jsonCommand('backup', 'copy the deployment to a folder or to S3')
      .requiredOption('--to <location>', 'folder, or s3://bucket/prefix')
      .addHelpText('after', BACKUP)
      .action((options) => interruptible(context, terminal, () => backup(context, options, terminal))),
  (terminal) =>
    jsonCommand('restore', 'replace the deployment by a backup')
      .requiredOption('--from <location>', 'folder or s3://bucket/prefix of backups, or of one backup')
      .addOption(yesOption())
      .addHelpText('after', RESTORE)
      .action((options) => interruptible(context, terminal, () => restore(context, options, terminal))),
];

async function interruptible({ stop }: BackupContext, terminal: Terminal, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (fault) {
    if (!stop.aborted) throw fault;
    terminal.progress('interrupted: run the command again');
    endWith(EXIT.failed);
  }
}

function sourcesOf(context: BackupContext, terminal: Terminal) {
  const { config, folder, environment, wallClockMs, readTopicSettings, stop: signal } = context;
  const account = context.addresses.clickhouse();
  return {
    account,
    client: createSqlClient(account),
    topicPrefix: config.TOPIC_PREFIX,
    generation: config.LINK_TOPIC_GENERATION,
    secrets: readSecrets(folder, environment),
    wallClockMs,
    readTopicSettings,
    signal,
    onProgress: terminal.progress,
  };
}

const awaitNodes = (account: ClickHouseAccount) =>
  Promise.all(onEachNode(account).map((node) => awaitClickHouse(createQueryRows(node))));

async function openStore({ environment }: BackupContext, location: string): Promise<BackupStore> {
  const [, scheme] = /^(\w+):\/\//.exec(location) ?? [];
  if (scheme === undefined) return openFolder(location);
  if (scheme !== 's3') throw new UsageError('expected a folder or s3://bucket/prefix');
  // Loaded on demand, because other commands do not need the client.
  return (await import('../backup/s3.ts')).openS3(location, environment);
}

async function backup(context: BackupContext, { to, ...output }: JsonOption & { to: string }, terminal: Terminal) {
  const [sources, store] = [sourcesOf(context, terminal), await openStore(context, to)];
  const { location, manifest } = await withScope(async (open) => {
    const log = await open(context.openLog());
    const offsets = await open(context.openOffsets());
    await Promise.all([awaitNodes(sources.account), awaitLog(log)]);
    return createBackup({ ...sources, log, offsets, schemas: await context.createSchemas() }, store);
  });
  const bytes = manifest.tables.flatMap(({ files }) => files).reduce((sum, file) => sum + file.bytes, 0);
  const records = manifest.topics.reduce((sum, topic) => sum + topic.records, 0);
  printResult(terminal, output, { location, tables: manifest.tables.length, bytes, records }, [
    `backup      ${location}`,
    `tables      ${manifest.tables.length}, ${Math.ceil(bytes / 1_000_000)} MB`,
    `topics      ${plural(records, 'record')} that no table contains`,
    `offsets     ${manifest.commits.length} partitions of consumer groups`,
    `schemas     ${manifest.schemas.length}`,
    `secrets     not copied: ${manifest.secrets.map(({ name }) => name).join(', ') || 'none visible'}`,
  ]);
}

interface RestoreOptions extends JsonOption {
  readonly from: string;
  readonly yes?: boolean | undefined;
}

async function restore(context: BackupContext, options: RestoreOptions, terminal: Terminal): Promise<void> {
  const source = await findBackup(options.from, (location) => openStore(context, location));
  const sources = sourcesOf(context, terminal);
  await withScope(async (open) => {
    const log = await open(context.openLog());
    const offsets = await open(context.openOffsets());
    const people = await open(context.openPeople());
    const records = await open(context.openErasureRecords());
    const rows = await open(context.openErasureRows());
    const awaitRedis = awaitStore('Redis', async () => (await people.readEpoch()) !== undefined);
    await Promise.all([awaitNodes(sources.account), awaitLog(log), awaitRedis]);
    const targets: RestoreTargets = {
      ...sources,
      log,
      offsets,
      people,
      records,
      rows,
      schemas: await context.createSchemas(),
      registrar: await context.createRegistrar(),
      openProducer: (topic) => context.openProducer(topic),
      rebuild: async () => endWith(await runCommand(await context.loadRebuild(), ['rebuild'], terminal)),
    };
    const plan = await planRestore(targets, source);
    const found = plan.isBegun ? 0 : await countRows(sources.account);
    const effect = `This deletes ${plural(found, 'row')} in the tables, and restores ${source.chosen.location}.`;
    if (found > 0) await confirm(effect, options, terminal);
    const lost = plan.isLoaded ? [] : await loadBackup(targets, source, plan.log);
    // Printed before the wait for erasures, because a repeated command does not find these records again.
    for (const { group, topic, partition, start, end } of lost)
      terminal.progress(
        `LOST: ${topic}/${partition} ${start} to ${end - 1}: retention deleted the records before ${group} could read them again`,
      );
    await finishErasures(targets);
    const { id } = source.chosen.manifest;
    printResult(terminal, options, { backup: id, log: plan.log, lost }, [
      `backup ${id} is restored, and reads are open`,
      plan.log === 'same'
        ? 'the services read all later records from the log again'
        : `the log was new: records after ${source.chosen.manifest.finishedAt} are lost`,
      ...accountLines(source.chosen.manifest.accounts),
    ]);
  });
}

const accountLines = (accounts: readonly string[]) =>
  accounts.length === 0 ? [] : [`ClickHouse accounts without a backup, to be created again: ${accounts.join(', ')}`];
