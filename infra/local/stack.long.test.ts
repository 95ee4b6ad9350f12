import { mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ClickHouseLogLevel, createClient } from '@clickhouse/client';
import { until } from '@playline/testkit';
import { Redis } from 'ioredis';
import { Kafka, logLevel } from 'kafkajs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { acceptsRecords } from './kafka.ts';
import { markOf } from './process-mark.ts';
import { loadSecrets } from './secrets.ts';
import { startStack } from './stack.ts';
import { readStackFile, stackFilePath } from './stack-file.ts';
import type { Stack } from './stack-options.ts';

const START_MS = 180_000;
const directory = mkdtempSync(join(tmpdir(), 'playline-stack-'));
const DATABASE = 'playline_test_stack';
let stack: Stack;

beforeAll(async () => {
  stack = await startStack({ directory, services: [] });
  await writeToAllStores();
}, START_MS);

afterAll(async () => {
  await stack?.stop();
  rmSync(directory, { recursive: true, force: true });
}, START_MS);

function openClickHouse(user = 'operator', password = stack.file.clickhouse.password) {
  const log = { level: ClickHouseLogLevel.OFF };
  return createClient({ url: stack.file.clickhouse.url, username: user, password, log });
}

function openRedis(): Redis {
  const client = new Redis(stack.file.redis, { retryStrategy: () => null, maxRetriesPerRequest: 0 });
  client.on('error', () => {});
  return client;
}

async function writeToAllStores(): Promise<void> {
  const redis = openRedis();
  await redis.set('kept', 'yes');
  redis.disconnect();
  const clickhouse = openClickHouse();
  for (const query of [
    `CREATE DATABASE ${DATABASE}`,
    `CREATE TABLE ${DATABASE}.kept (value String) ENGINE = MergeTree ORDER BY value`,
    `INSERT INTO ${DATABASE}.kept VALUES ('yes')`,
  ])
    await clickhouse.command({ query });
  await clickhouse.close();
  const producer = new Kafka({ brokers: stack.file.kafka, logLevel: logLevel.NOTHING }).producer();
  await producer.connect();
  await producer.send({ topic: 'playline.probe', messages: [{ value: 'kept' }] });
  await producer.disconnect();
}

/** Counts the records in the probe topic, to which readiness checks add records. */
async function countRecords(): Promise<number> {
  const admin = new Kafka({ brokers: stack.file.kafka, logLevel: logLevel.NOTHING }).admin();
  await admin.connect();
  try {
    const [partition] = await admin.fetchTopicOffsets('playline.probe');
    return Number(partition?.high ?? 0);
  } finally {
    await admin.disconnect();
  }
}

async function expectDataKept(recordsMin: number): Promise<void> {
  await until('Redis returns its data', async () => {
    const redis = openRedis();
    return (await redis.get('kept').finally(() => redis.disconnect())) === 'yes';
  });
  await until('ClickHouse returns its data', async () => {
    const clickhouse = openClickHouse();
    const result = await clickhouse.query({ query: `SELECT value FROM ${DATABASE}.kept`, format: 'JSONEachRow' });
    expect(await result.json().finally(() => clickhouse.close())).toEqual([{ value: 'yes' }]);
    return true;
  });
  const [broker = ''] = stack.file.kafka;
  await until('Kafka stores records again', () => acceptsRecords(broker), START_MS);
  expect(await countRecords()).toBeGreaterThan(recordsMin);
}

test('the stack file is private and contains the pids of the stores', () => {
  expect(statSync(stackFilePath(stack.paths)).mode & 0o777).toBe(0o600);
  expect(readStackFile(stack.paths)).toEqual(stack.file);
  expect(Object.keys(stack.file.processes).toSorted()).toEqual(['clickhouse', 'kafka', 'redis', 'registry']);
  for (const pid of Object.values(stack.file.processes)) expect(markOf(pid)).not.toBeNull();
});

test('killed stores restart with their data and addresses and with new pids', { timeout: START_MS }, async () => {
  const before = stack.file;
  const records = await countRecords();
  const names = Object.keys(before.processes);
  for (const pid of Object.values(before.processes)) process.kill(pid, 'SIGKILL');
  await until('four new processes run', () => {
    const { processes } = stack.file;
    return names.every((name) => processes[name] !== undefined && processes[name] !== before.processes[name]);
  });
  await expectDataKept(records);
  expect({ ...stack.file, processes: {} }).toEqual({ ...before, processes: {} });
  expect(readStackFile(stack.paths)).toEqual(stack.file);
});

test('a killed process is restarted even if its record cannot be written, as on a full disk', async () => {
  const { redis: killed } = stack.file.processes;
  const drafts = ['children', 'processes', 'stack'].map((name) => join(directory, `${name}.json.${process.pid}.new`));
  for (const draft of drafts) mkdirSync(draft);
  process.kill(killed ?? 0, 'SIGKILL');
  await until('a new process runs', () => ![undefined, killed].includes(stack.file.processes.redis));
  await until('Redis returns its data', async () => {
    const redis = openRedis();
    return await redis.get('kept').finally(() => redis.disconnect());
  });
  for (const draft of drafts) rmSync(draft, { recursive: true });
});

test('a stopped stack restarts with the same addresses, secrets and data', { timeout: START_MS }, async () => {
  const before = stack.file;
  const records = await countRecords();
  await stack.stop();
  for (const pid of Object.values(before.processes)) expect(markOf(pid)).toBeNull();
  expect(readStackFile(stack.paths)).toBeNull();
  stack = await startStack({ directory, services: [] });
  expect({ ...stack.file, processes: {} }).toEqual({ ...before, processes: {} });
  await expectDataKept(records);
});

test("the chain API's account can read public chain tables but no personal data", async () => {
  const operator = openClickHouse('operator', loadSecrets(stack.paths).operatorPassword);
  const reader = openClickHouse('reader', loadSecrets(stack.paths).readerPassword);
  const run = (query: string) => reader.command({ query });
  try {
    // The rights on single tables apply only to the database playline.
    await operator.command({ query: 'CREATE DATABASE IF NOT EXISTS playline' });
    for (const table of ['playline.activity_feeds', 'playline.tokens']) {
      await operator.command({ query: `CREATE TABLE ${table} (value String) ENGINE = Memory` });
      await run(`SELECT value FROM ${table}`);
      await expect(run(`INSERT INTO ${table} VALUES ('no')`)).rejects.toThrow(/readonly|privileges/i);
      await operator.command({ query: `DROP TABLE ${table}` });
    }
    await expect(run(`SELECT value FROM ${DATABASE}.kept`)).rejects.toThrow(/privileges/);
    await expect(run('SELECT 1 SETTINGS max_execution_time = 11')).rejects.toThrow(/max_execution_time/);
  } finally {
    await Promise.all([operator.close(), reader.close()]);
  }
});

test('the account of ClickHouse’s own session, which has no password, cannot run queries', async () => {
  const session = openClickHouse('default', '');
  await expect(session.command({ query: `SELECT value FROM ${DATABASE}.kept` })).rejects.toThrow(
    /account is reserved for the engine/,
  );
  await session.close();
});
