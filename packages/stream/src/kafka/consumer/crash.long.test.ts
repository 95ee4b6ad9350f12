import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { testStores, until } from '@playline/testkit';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { Producer } from '../../ports.ts';
import { send } from '../../test/producer-contract.ts';
import { openProducer } from '../producer/open-producer.ts';
import { openTestTable, type TestTable } from '../test/clickhouse-table.ts';
import { type KafkaFixture, openKafkaFixture } from '../test/kafka-fixture.ts';
import type { WriterProcessSettings } from '../test/writer-process.ts';

const SCRIPT = fileURLToPath(new URL('../test/writer-process.ts', import.meta.url));
/** The shortest that brokers of the local stack allow. A killed member is replaced after this time. */
const SESSION_TIMEOUT_MS = 1_000;
const RECORDS = 12_000;
const CYCLES = 3;

const randomMs = (min: number, max: number) => min + Math.random() * (max - min);

let fixture: KafkaFixture;
let producer: Producer;
let table: TestTable;
const writers = new Set<ChildProcess>();

beforeAll(async () => {
  fixture = await openKafkaFixture();
  producer = await openProducer({ brokers: fixture.brokers, clientId: 'test' });
});
afterEach(async () => {
  for (const writer of writers) {
    writer.kill('SIGCONT');
    writer.kill('SIGKILL');
  }
  await table.close();
});
afterAll(async () => {
  await producer.close();
  await fixture.close();
});

/** A topic to fill, an empty table, and writers from the one to the other. */
async function prepare(options: { withoutIntents: boolean }) {
  const topic = await fixture.createTopic({ partitions: 2 });
  const fill = async (count: number) => {
    const record = { topic, key: null, value: Buffer.alloc(100, 'x') };
    const batch = Array.from({ length: 100 }, () => record);
    await Promise.all(Array.from({ length: count / 100 }, () => send(producer, batch)));
  };
  const { clickhouse } = testStores();
  table = await openTestTable(clickhouse);
  const settings: WriterProcessSettings = {
    ...options,
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

/** Kills one writer after the other, while each makes progress. @returns how many it killed */
async function killRepeatedly(start: () => Promise<ChildProcess>, times: number): Promise<number> {
  for (let cut = 0; cut < times; cut++) {
    const before = (await table.count()).rows;
    const writer = await start();
    await until('progress', async () => (await table.count()).rows > before);
    await delay(randomMs(0, 200));
    const gone = once(writer, 'exit');
    writer.kill('SIGKILL');
    await gone;
    if ((await table.count()).different >= RECORDS) return cut + 1;
  }
  return times;
}

async function expectEveryRecordOnce() {
  await until('every record', async () => (await table.count()).different >= RECORDS, 30_000);
  expect(await table.count()).toEqual({ rows: RECORDS, different: RECORDS, missing: 0 });
}

it('writers that are killed at random moments store every record once', async () => {
  const { start, fill } = await prepare({ withoutIntents: false });
  await fill(RECORDS);
  const cuts = await killRepeatedly(start, 8);
  await start();
  await expectEveryRecordOnce();
  expect(cuts).toBeGreaterThan(3);
}, 90_000);

it('a writer that is frozen past its session while another takes over stores every record once', async () => {
  const { start, fill } = await prepare({ withoutIntents: false });
  let [one, other] = [await start(), await start()];
  for (let cycle = 0; cycle < CYCLES; cycle++) {
    await fill(RECORDS / CYCLES);
    await delay(randomMs(50, 400));
    one.kill('SIGSTOP');
    await delay(randomMs(SESSION_TIMEOUT_MS + 300, SESSION_TIMEOUT_MS + 1_000));
    one.kill('SIGCONT');
    await delay(randomMs(100, 500));
    [one, other] = [other, one];
  }
  await expectEveryRecordOnce();
}, 90_000);

it('writers without intents double records when they are killed', async () => {
  const { start, fill } = await prepare({ withoutIntents: true });
  await fill(RECORDS);
  for (let round = 0; round < 8; round++) {
    await killRepeatedly(start, 2);
    const { rows, different } = await table.count();
    if (rows > different) return;
  }
  expect.fail('no record was doubled');
}, 90_000);
