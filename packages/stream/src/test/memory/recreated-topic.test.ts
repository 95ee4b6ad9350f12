import { setImmediate as nextTurn } from 'node:timers/promises';
import { until } from '@playline/testkit';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createTokenSink, TokenStore } from '../token-store.ts';
import { openFilledLog } from './open-filled-log.ts';

const TOPIC = 'topic';
const limits = { rowsMax: 3, bytesMax: 1_000_000, ageMaxMs: 1 };

const waitTurns = async (turns: number) => {
  for (let i = 0; i < turns; i++) await nextTurn();
};

/** What happens to a topic while a consumer runs, in this order. */
interface ConsumerRun {
  append: number;
  turns: number;
  isRecreated: boolean;
  /**
   * Turns until records are appended to the new topic. With a slow store, the consumer is paused during these turns.
   */
  turnsBetween: number;
  appendAfter: number;
  isStoreSlow: boolean;
  turnsAfter: number;
  isKilled: boolean;
}

const smallCount = fc.integer({ min: 0, max: 12 });
const consumerRun: fc.Arbitrary<ConsumerRun> = fc.record({
  append: smallCount,
  turns: smallCount,
  isRecreated: fc.boolean(),
  turnsBetween: smallCount,
  appendAfter: fc.integer({ min: 0, max: 25 }),
  isStoreSlow: fc.boolean(),
  turnsAfter: smallCount,
  isKilled: fc.boolean(),
});

async function run(runs: readonly ConsumerRun[]) {
  const { log, append } = openFilledLog(TOPIC);
  const store = new TokenStore();
  const open = () => log.openBlockConsumer({ topics: [TOPIC], sink: createTokenSink(store), limits });
  for (const each of runs) {
    const consumer = open();
    const gate = Promise.withResolvers<void>();
    store.onWrite = async () => void (await (each.isStoreSlow ? gate.promise : nextTurn()));
    await append(each.append);
    await waitTurns(each.turns);
    if (each.isRecreated) log.recreate(TOPIC);
    await waitTurns(each.turnsBetween);
    await append(each.appendAfter);
    gate.resolve();
    await waitTurns(each.turnsAfter);
    if (each.isKilled) consumer.kill();
    else await consumer.close();
  }
  store.onWrite = async () => void (await nextTurn());
  const checking = open();
  await checking.idle();
  const isPaused = !checking.ready();
  await checking.close();
  if (isPaused) log.decide({ topic: TOPIC, partition: 0, from: 0 });
  const last = open();
  await until('the consumer is ready', () => last.ready());
  await last.idle();
  await last.close();
  const texts = log.records(TOPIC).map(({ value }) => `${value}`);
  return { texts, rows: store.rows.map(({ text }) => text) };
}

it('every record of a recreated topic is stored exactly once, regardless of the state of its consumer', async () => {
  const property = fc.asyncProperty(fc.array(consumerRun, { minLength: 1, maxLength: 4 }), async (runs) => {
    const { texts, rows } = await run(runs);
    expect(rows.filter((text) => texts.includes(text)).sort()).toEqual(texts.sort());
  });
  await fc.assert(property, { numRuns: 100 });
});

it('a record handler never starts in the middle of a recreated topic after a pause', async () => {
  const { log, append } = openFilledLog(TOPIC);
  const gate = Promise.withResolvers<void>();
  const handled: string[] = [];
  await append(30);
  const consumer = log.openRecordConsumer({
    topics: [TOPIC],
    batchRecordsMax: 5,
    onBatch: async (records) => {
      await gate.promise;
      handled.push(...records.map(({ value }) => `${value}`));
    },
  });
  await waitTurns(5);
  log.recreate(TOPIC);
  await append(60);
  gate.resolve();
  await until('the partition is paused', () => !consumer.ready());
  await consumer.close();
  expect(handled).toHaveLength(30);
});

it('a handler that checks a batch of a recreated topic is called again for the new topic', async () => {
  const { log, append } = openFilledLog(TOPIC);
  await append(10);
  const starts: (boolean | null | string)[] = [];
  const gate = Promise.withResolvers<void>();
  const consumer = log.openRecordConsumer({
    topics: [TOPIC],
    onAssign: async ({ committed, hasBatch }) => {
      await gate.promise;
      try {
        starts.push(await hasBatch({ base: 3, epoch: 0, crc: 3 }));
      } catch (fault) {
        starts.push((fault as Error).name);
        throw fault;
      }
      return committed;
    },
    onBatch: async () => {},
  });
  await waitTurns(2);
  log.recreate(TOPIC);
  await append(10);
  gate.resolve();
  await until('the handler is called for the new topic', () => starts.length > 0 && starts.at(-1) !== 'RetryableFault');
  await consumer.close();
  expect(starts).toEqual(['RetryableFault', false]);
});
