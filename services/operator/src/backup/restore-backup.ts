/** Restores a backup. Every step can be repeated; a repeated restore replaces all tables again until they are complete. */
import { randomUUID } from 'node:crypto';
import { TOPICS } from '@playline/contracts';
import { type ErasureRecords, type ErasureRows, scrub } from '@playline/erasure';
import type { People } from '@playline/people';
import { GROUPS } from '@playline/runtime';
import { type ClickHouseAccount, createQueryRows, onEachNode, overAllNodes, pauseOrThrow } from '@playline/stores';
import type { Producer } from '@playline/stream';
import type { Schemas } from '../await-store.ts';
import { createSqlClient, type SqlClient } from '../columns/tables.ts';
import { createStoredRows } from '../verify/stored-rows.ts';
import type { Backup } from './backup-store.ts';
import { addPropertyColumns, assertSameSchema } from './database.ts';
import { removeLaterActivities } from './later-activities.ts';
import {
  assertNotConsumed,
  compareLog,
  type LogComparison,
  type LogStores,
  type LostRange,
  markReplaced,
  moveGroups,
} from './log-state.ts';
import { closeGate, openGate, readGate } from './read-gate.ts';
import { restoreSchemas, type SchemaRegistrar } from './schemas.ts';
import { compareSecrets } from './secrets.ts';
import { ERASURE_TABLES, loadTables } from './tables.ts';
import { publishTopics } from './topic-files.ts';
import { compareTopicSettings, readTopicSettings, type TopicSettingsSource } from './topic-settings.ts';

export interface RestoreTargets extends LogStores, TopicSettingsSource {
  readonly account: ClickHouseAccount;
  readonly client: SqlClient;
  readonly schemas: Schemas;
  readonly registrar: SchemaRegistrar;
  readonly openProducer: (topic: string) => Promise<Producer>;
  readonly records: ErasureRecords;
  readonly rows: ErasureRows;
  readonly people: People;
  /** Fills an empty Redis. */
  readonly rebuild: () => Promise<void>;
  readonly secrets: ReadonlyMap<string, string>;
  /** LINK_TOPIC_GENERATION. */
  readonly generation: number;
  readonly wallClockMs: () => number;
  readonly onProgress: (line: string) => void;
  readonly signal: AbortSignal;
}

/** A backup, and the newest backup beside it, whose erasures apply. */
export interface RestoreSource {
  readonly chosen: Backup;
  readonly newest: Backup;
}

export interface RestorePlan {
  readonly log: LogComparison;
  /** True if the tables were loaded by an earlier run of this restore. */
  readonly isLoaded: boolean;
  /** True if an earlier run has begun to replace the tables. */
  readonly isBegun: boolean;
}

/** Checks that the backup can be restored, without changing anything. @throws Error that states what to do first */
export async function planRestore(targets: RestoreTargets, { chosen, newest }: RestoreSource): Promise<RestorePlan> {
  const { account, client, people, onProgress } = targets;
  for (const node of onEachNode(account)) await assertSameSchema(createSqlClient(node), chosen.manifest);
  assertColumnsSupported(account, chosen);
  for (const line of compareSecrets(targets.secrets, chosen.manifest.secrets)) onProgress(line);
  const settings = await readTopicSettings(targets);
  for (const line of compareTopicSettings(settings, chosen.manifest.topicSettings, targets.topicPrefix))
    onProgress(line);
  const gate = await readGate(client);
  const isLoaded = gate?.phase === 'loaded' && gate.backup === chosen.manifest.id;
  if (!isLoaded) for (const backup of [chosen, newest]) await backup.assertComplete();
  const log = await compareLog(targets, chosen.manifest.commits);
  const plan = { log, isLoaded, isBegun: gate !== null };
  if (isLoaded) return plan;
  if (log === 'same') await assertRequestsRetained(targets, newest);
  else await assertNewDeployment(targets, chosen, gate === null ? await people.readEpoch() : null);
  return plan;
}

/** @throws Error for property columns in a cluster, whose views over all nodes `columns` cannot change */
function assertColumnsSupported({ cluster }: ClickHouseAccount, { manifest: { propertyColumns } }: Backup): void {
  if (cluster === undefined || propertyColumns.length === 0) return;
  const names = propertyColumns.map(({ name }) => name).join(', ');
  throw new Error(
    `the backup has property columns (${names}), which a cluster of ClickHouse does not support: restore it on a single ` +
      'server, drop them with npm run columns, and back up that server',
  );
}

/** @throws Error if erasure requests have expired that no backup contains */
async function assertRequestsRetained({ log, topicPrefix }: RestoreTargets, { manifest }: Backup): Promise<void> {
  const topic = topicPrefix + TOPICS.erasures.name;
  const bounds = await log.bounds(topic);
  const saved = manifest.commits.filter((each) => each.group === GROUPS.eraser && each.topic === TOPICS.erasures.name);
  for (const { partition, start } of bounds) {
    const committed = saved.find((each) => each.partition === partition)?.committed ?? 0;
    if (start > committed)
      throw new Error(
        `${topic}/${partition}: requests ${committed} to ${start - 1} have expired since the newest backup (${manifest.id}), ` +
          'so it is unknown who was erased. Put a newer backup beside it: its erasures are applied to the older one.',
      );
  }
}

/** In a new log, offsets repeat, so nothing may remember the offsets of the lost one. */
async function assertNewDeployment({ generation }: RestoreTargets, { manifest }: Backup, epoch: string | null) {
  if (epoch !== null)
    throw new Error(
      'the log is not the one of the backup, so Redis must be rebuilt: stop all services, empty its database (FLUSHDB), ' +
        'and run the command again',
    );
  if (generation <= manifest.generation)
    throw new Error(
      `the log is not the one of the backup: set LINK_TOPIC_GENERATION to ${manifest.generation + 1} for this command and ` +
        'for all services, because decisions about links are ordered by it',
    );
}

/**
 * Loads the tables while reads are refused, moves the consumer groups, and deletes the rows of everyone whom the newest
 * backup knows to be erased. Services must be stopped.
 * @returns records of the log that retention has deleted since the backup
 */
export async function loadBackup(
  targets: RestoreTargets,
  source: RestoreSource,
  log: LogComparison,
): Promise<LostRange[]> {
  const { account, client, onProgress } = targets;
  const { chosen, newest } = source;
  const state = { backup: chosen.manifest.id, run: randomUUID() };
  const schemaIds = await restoreSchemas(targets, chosen.manifest.schemas, log);
  await closeGate(account, { ...state, phase: 'loading' });
  const commits = withErasuresOf(chosen, newest);
  const lost = log === 'same' ? await moveGroups(targets, commits) : [];
  await addPropertyColumns(client, chosen.manifest);
  const assertCurrent = async () => {
    if ((await readGate(client))?.run !== state.run) throw new Error('another restore has taken over');
  };
  await loadTables({ ...targets, tables: tablesOf(source), runId: state.run, assertCurrent });
  if (log === 'same') {
    await removeLaterActivities(targets, commits);
    await assertNotConsumed(targets, commits);
  } else await continueInNewLog(targets, source, schemaIds);
  if ((await targets.people.readEpoch()) === null) await targets.rebuild();
  onProgress('deleting the rows of erased people');
  await scrub({ ...targets, people: targets.people.guards });
  // Otherwise, views would not find the persons of restored links until the next reload.
  for (const node of onEachNode(account)) await createSqlClient(node).run('SYSTEM RELOAD DICTIONARY identity_persons');
  await closeGate(account, { ...state, phase: 'loaded' });
  return lost;
}

/** The eraser continues after the requests that the restored erasure tables contain. */
function withErasuresOf(chosen: Backup, newest: Backup) {
  const isErasers = ({ group }: { group: string }) => group === GROUPS.eraser;
  return [...chosen.manifest.commits.filter((each) => !isErasers(each)), ...newest.manifest.commits.filter(isErasers)];
}

function tablesOf({ chosen, newest }: RestoreSource) {
  const isErasure = ({ name }: { name: string }) => ERASURE_TABLES.includes(name);
  const toTables = (backup: Backup) => backup.manifest.tables.map((table) => ({ backup, table }));
  return [
    ...toTables(chosen).filter(({ table }) => !isErasure(table)),
    ...toTables(newest).filter(({ table }) => isErasure(table)),
  ];
}

/** Not used to find the last offsets. */
const STORED_BUCKET = 1;

async function continueInNewLog(
  targets: RestoreTargets,
  { chosen, newest }: RestoreSource,
  schemaIds: ReadonlyMap<number, number>,
): Promise<void> {
  const stored = createStoredRows(createQueryRows(overAllNodes(targets.account)), STORED_BUCKET);
  if (!(await markReplaced(targets, stored, chosen.manifest.commits)))
    targets.onProgress(
      'services are running: npm run verify reports the rows of partitions without new records as future',
    );
  const isErasures = ({ topic }: { topic: string }) => topic === TOPICS.erasures.name;
  const publish = (backup: Backup, topics: Backup['manifest']['topics']) =>
    publishTopics({ ...targets, backup, topics, toSchemaId: (id) => schemaIds.get(id) ?? id });
  await publish(
    chosen,
    chosen.manifest.topics.filter((each) => !isErasures(each)),
  );
  await publish(newest, newest.manifest.topics.filter(isErasures));
}

const POLL_MS = 500;

/**
 * Waits until everyone whose erasure was requested by now is erased, and then opens the tables to readers. Requests that
 * were made after the backup are in the log; the eraser applies them once the services run.
 */
export async function finishErasures(targets: RestoreTargets): Promise<void> {
  const { log, records, account, topicPrefix, onProgress, signal } = targets;
  const topic = topicPrefix + TOPICS.erasures.name;
  const ends = await log.bounds(topic);
  const awaitNone = async (what: string, count: () => Promise<number>) => {
    for (let shown = -1; ; await pauseOrThrow(POLL_MS, signal)) {
      const left = await count();
      if (left === 0) return;
      if (left !== shown)
        onProgress(`waiting for the eraser: ${left} ${what}; start all services except gateway and portal`);
      shown = left;
    }
  };
  await awaitNone('erasure requests to read', async () => {
    const committed = await log.committed(GROUPS.eraser, topic);
    return ends.reduce(
      (sum, { partition, start, end }) => sum + end - Math.min(end, committed.get(partition) ?? start),
      0,
    );
  });
  const open = new Set((await records.readUnfinished()).map(({ erasureId }) => erasureId.toString('hex')));
  await awaitNone('erasures to apply', async () => {
    const done = await records.readFinished();
    return [...open].filter((id) => !done.has(id)).length;
  });
  await openGate(account);
}
