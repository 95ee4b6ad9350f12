import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { testStores, until } from '@playline/testkit';
import { afterEach, expect, it } from 'vitest';
import { send } from '../../test/producer-contract.ts';
import { openTestTable, type TestTable } from '../test/clickhouse-table.ts';
import { useKafka } from '../test/kafka-fixture.ts';
import type { WriterProcessSettings } from '../test/writer-process.ts';

const SCRIPT = fileURLToPath(new URL('../test/writer-process.ts', import.meta.url));
/** The minimum that the local stack's brokers allow. A killed member is replaced after this time. */
const SESSION_TIMEOUT_MS = 1_000;
const RECORDS = 12_000;
const CYCLES = 2;

const randomMs = (min: number, max: number) => min + Math.random() * (max - min);

const { fixture, producer } = await useKafka();
let table: TestTable;
const writers = new Set<ChildProcess>();

afterEach(async () => {
  for (const writer of writers) {
    writer.kill('SIGCONT');
    writer.kill('SIGKILL');
  }
  await table.close();
});

async function prepare() {
  const topic = await fixture.createTopic({ partitions: 2 });
  const fill = async (count: number) => {
    const record = { topic, key: null, value: Buffer.alloc(100, 'x') };
    const batch = Array.from({ length: 100 }, () => record);
    await Promise.all(Array.from({ length: count / 100 }, () => send(producer, batch)));
  };
  const { clickhouse } = testStores();
  table = await openTestTable();
  const settings: WriterProcessSettings = {
    brokers: fixture.brokers,
    topic,
    groupId: `${topic}-group`,
    table: table.name,
    clickhouse,
    sessionTimeoutMs: SESSION_TIMEOUT_MS,
  };
  const start = async () => {
    const writer = spawn(process.execPath, [SCRIPT, JSON.stringify(settings)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    writers.add(writer);
    writer.once('exit', () => writers.delete(writer));
    await once(writer.stdout!, 'data');
    return writer;
  };
  return { start, fill };
}

/** Kills one writer after another, each once it has made progress. @returns the number of killed writers */
async function killRepeatedly(start: () => Promise<ChildProcess>, times: number): Promise<number> {
  for (let killed = 0; killed < times; killed++) {
    const rowsBefore = (await table.count()).rows;
    const writer = await start();
    await until('the writer makes progress', async () => (await table.count()).rows > rowsBefore);
    await delay(randomMs(0, 200));
    const exited = once(writer, 'exit');
    writer.kill('SIGKILL');
    await exited;
    if ((await table.count()).distinct >= RECORDS) return killed + 1;
  }
  return times;
}

async function expectEveryRecordOnce() {
  await until('every record is stored', async () => (await table.count()).distinct >= RECORDS, 30_000);
  expect(await table.count()).toEqual({ rows: RECORDS, distinct: RECORDS, missing: 0 });
}

it('every record is stored once when writers are killed at random times', async () => {
  const { start, fill } = await prepare();
  await fill(RECORDS);
  const killed = await killRepeatedly(start, 5);
  await start();
  await expectEveryRecordOnce();
  expect(killed).toBeGreaterThan(3);
}, 90_000);

it('every record is stored once when a writer is suspended past its session timeout and replaced', async () => {
  const { start, fill } = await prepare();
  let [suspended, running] = [await start(), await start()];
  for (let cycle = 0; cycle < CYCLES; cycle++) {
    await fill(RECORDS / CYCLES);
    await delay(randomMs(50, 400));
    suspended.kill('SIGSTOP');
    await delay(randomMs(SESSION_TIMEOUT_MS + 300, SESSION_TIMEOUT_MS + 1_000));
    suspended.kill('SIGCONT');
    await delay(randomMs(100, 500));
    [suspended, running] = [running, suspended];
  }
  await expectEveryRecordOnce();
}, 90_000);
