/** Removes activities that were stored while a backup was running, because their records are read again. */
import { TOPICS } from '@playline/contracts';
import { GROUPS } from '@playline/runtime';
import { type ClickHouseAccount, sendStatement } from '@playline/stores';
import type { SqlClient } from '../columns/tables.ts';
import type { LogStores } from './log-state.ts';
import type { BackedUpCommit } from './manifest.ts';

interface Targets extends Pick<LogStores, 'log' | 'topicPrefix'> {
  readonly account: ClickHouseAccount;
  readonly client: SqlClient;
}

const US_PER_MS = 1_000;
const MUTATION_MAX_MS = 3_600_000;

/**
 * Removes the versions of records from a commit onwards. A version that is read again gets a later time, so it would not
 * be recognised as stored, and would appear in the feed twice.
 */
export async function removeLaterActivities(targets: Targets, commits: readonly BackedUpCommit[]): Promise<void> {
  const { name } = TOPICS.activities;
  for (const { group, topic, partition, committed } of commits)
    if (group === GROUPS.activityWriter && topic === name) await removeFrom(targets, partition, committed);
}

async function removeFrom(targets: Targets, partition: number, committed: number): Promise<void> {
  const firstMs = await readTimeFrom(targets, partition, committed);
  if (firstMs === null) return;
  // Rows of an earlier log may have the same offsets, but they have earlier times.
  const isLater = `kafka_offset >= ${committed} AND updated_at >= ${toTime(firstMs * US_PER_MS)}`;
  const [row] = await targets.client.read(`SELECT toString(toUnixTimestamp64Micro(maxIf(updated_at, NOT (${isLater})))),
    groupUniqArray(chain) FROM activities WHERE kafka_partition = ${partition}`);
  const [last = '0', chains = []] = (row ?? []) as [string, string[]];
  if (chains.length === 0) return;
  const after = toTime(last);
  const remove = (table: string, where: string) =>
    runMutation(targets.account, `ALTER TABLE ${table} DELETE WHERE ${where} SETTINGS mutations_sync = 2`);
  await remove('activities', `kafka_partition = ${partition} AND updated_at > ${after}`);
  await remove(
    'activity_feeds',
    `kafka_partition = ${partition} AND (updated_at > ${after} OR (entry = 'superseded' AND superseded_at > ${after}))`,
  );
  const list = chains.map((chain) => `'${chain.replaceAll(/['\\]/g, '\\$&')}'`).join(', ');
  await remove('activity_ids', `chain IN (${list}) AND updated_at > ${after}`);
}

/** Times in a partition increase with every record. */
const toTime = (us: number | string) => `fromUnixTimestamp64Micro(${us}, 'UTC')`;

async function readTimeFrom({ log, topicPrefix }: Targets, partition: number, start: number): Promise<number | null> {
  const topic = topicPrefix + TOPICS.activities.name;
  const end = (await log.bounds(topic)).find((each) => each.partition === partition)?.end ?? 0;
  for await (const { timestampMs } of log.read({ topic, partition, start, end })) return timestampMs;
  return null;
}

async function runMutation(account: ClickHouseAccount, body: string): Promise<void> {
  await (
    await sendStatement(account, { body, settings: { wait_end_of_query: '1' }, deadlineMs: MUTATION_MAX_MS })
  ).text();
}
