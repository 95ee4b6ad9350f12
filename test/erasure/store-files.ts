import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { TOPIC_STORES } from '@playline/erasure';
import { until } from '@playline/testkit';
import { Kafka, logLevel } from 'kafkajs';
import { query } from '../faults/world/clickhouse.ts';
import type { ErasureRig } from './rig.ts';
import { findInFiles } from './traces/files.ts';
import type { Needle, Trace } from './traces/needle.ts';

const dataOf = ({ world }: ErasureRig, store: string) => join(world.folder, 'data', store);
/** By default, a broker checks for expired segments 30 seconds after startup and then every five minutes. */
const EXPIRY_SETTINGS = 'log.initial.task.delay.ms=1000\nlog.retention.check.interval.ms=1000\n';
const EXPIRED_WITHIN_MS = 110_000;

/** Searches the raw and decompressed ClickHouse files. Traces are located by table. */
export async function findInEngineFiles(rig: ErasureRig, needles: readonly Needle[]): Promise<Trace[]> {
  const tables = await rig.query(
    `SELECT database, name, toString(uuid) FROM system.tables
     WHERE database IN (currentDatabase(), 'system') AND engine LIKE '%MergeTree'`,
  );
  // ClickHouse names a table's folder after the table's id or name.
  const locationOf = (path: string) => {
    const found = tables.find(
      ([database, name, id = '']) => path.includes(`/${id}/`) || path.includes(`/${database}/${name}/`),
    );
    return found === undefined ? path : `table ${found[0] === 'system' ? 'system.' : ''}${found[1]}`;
  };
  return findInFiles(dataOf(rig, 'clickhouse'), needles, { locationOf, decompress: true });
}

/** Makes ClickHouse delete replaced files after a second instead of eight minutes. */
export async function speedUpFileRemoval(rig: ErasureRig): Promise<void> {
  const { engine } = rig.world.deployment;
  const tables = await rig.query(
    "SELECT name FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree'",
  );
  for (const [name] of tables) {
    await query(
      engine,
      `ALTER TABLE ${name} MODIFY SETTING old_parts_lifetime = 1, cleanup_delay_period = 1,
         max_cleanup_delay_period = 1, cleanup_delay_period_random_add = 0`,
    );
    // Reattaching restarts the cleanup thread, which otherwise sleeps for half a minute.
    await query(engine, `DETACH TABLE ${name} SYNC`);
    await query(engine, `ATTACH TABLE ${name}`);
  }
}

/** Queries of `system.parts` reference all parts and block their removal, so pauses are necessary. */
const POLL_MS = 1_000;

/** ClickHouse deletes replaced files periodically, less often on a busy machine. */
const REPLACED_WITHIN_MS = 200_000;

export async function awaitReplacedFiles(rig: ErasureRig): Promise<void> {
  const areDeleted = async () => {
    await delay(POLL_MS);
    const remaining = await rig.query(
      'SELECT DISTINCT table FROM system.parts WHERE database = currentDatabase() AND NOT active ORDER BY table',
    );
    if (remaining.length > 0) throw new Error(`replaced files remain in ${remaining.join(', ')}`);
    return true;
  };
  await until('no replaced files remain', areDeleted, REPLACED_WITHIN_MS);
}

/** Searches the broker files, in which records are not compressed. Each trace is reported by its topic. */
export function findInBrokerFiles(rig: ErasureRig, needles: readonly Needle[]): Trace[] {
  const prefix = rig.topic('');
  const locationOf = (path: string) => {
    const topic = TOPIC_STORES.find(({ name }) => path.includes(`/${prefix}${name}-`) && /-\d+\//.test(path));
    return topic === undefined ? path : `topic ${topic.name}`;
  };
  return findInFiles(dataOf(rig, 'kafka'), needles, { locationOf });
}

export async function expireTopics(rig: ErasureRig): Promise<void> {
  const admin = new Kafka({ brokers: [...rig.world.stack.file.kafka], logLevel: logLevel.NOTHING }).admin();
  await admin.connect();
  const topics = TOPIC_STORES.filter(({ clearing }) => clearing.by === 'ttl').map(({ name }) => rig.topic(name));
  const configEntries = [
    { name: 'retention.ms', value: '1' },
    { name: 'file.delete.delay.ms', value: '1' },
  ];
  // Resource type 2 is a topic.
  const resources = topics.map((name) => ({ type: 2, name, configEntries }));
  await admin.alterConfigs({ validateOnly: false, resources });
  await admin.disconnect();
  appendFileSync(join(rig.world.folder, 'etc', 'kafka.properties'), EXPIRY_SETTINGS);
  process.kill(await rig.world.storePid('kafka'), 'SIGTERM');
  const isExpired = async () => {
    for (const topic of topics)
      for (const { start, end } of await rig.log.reader.bounds(topic)) if (start < end) return false;
    return true;
  };
  await until('all records of every topic are deleted', isExpired, EXPIRED_WITHIN_MS);
}

/** Rewrites Redis's append-only file without compression, which removes deleted data. */
export async function rewriteAppendOnlyFile({ redis }: ErasureRig): Promise<void> {
  await redis.config('SET', 'rdbcompression', 'no');
  await redis.bgrewriteaof();
  await until('the append-only file is rewritten', async () => {
    const info = await redis.info('persistence');
    return /aof_rewrite_in_progress:0/.test(info) && /aof_rewrite_scheduled:0/.test(info);
  });
  if (!/aof_last_bgrewrite_status:ok/.test(await redis.info('persistence')))
    throw new Error('Redis failed to rewrite its append-only file');
}

/** Searches the append-only file, which consists of a snapshot and all later commands. */
export const findInRedisFiles = (rig: ErasureRig, needles: readonly Needle[]): Trace[] =>
  findInFiles(dataOf(rig, 'redis'), needles, { locationOf: () => 'Redis files' });

export const findInLogs = (rig: ErasureRig, needles: readonly Needle[]): Trace[] =>
  findInFiles(join(rig.world.folder, 'logs'), needles);
