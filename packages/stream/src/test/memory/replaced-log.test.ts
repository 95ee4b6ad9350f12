import { setImmediate as nextTurn } from 'node:timers/promises';
import { until } from '@playline/testkit';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { BlockLimits } from '../../ports.ts';
import { createTokenSink, TokenStore } from '../token-store.ts';
import type { MemoryConsumer } from './index.ts';
import { openFilledLog } from './open-filled-log.ts';

const TOPIC = 'topic';

/** What happens while a consumer runs, in this order. */
interface ConsumerRun {
  append: number;
  turns: number;
  /** The fraction of the log that is truncated; null if the log is not truncated. */
  truncated: number | null;
  appendAfter: number;
  turnsAfter: number;
  isKilled: boolean;
}

const smallCount = fc.integer({ min: 0, max: 12 });
const consumerRun: fc.Arbitrary<ConsumerRun> = fc.record({
  append: smallCount,
  turns: smallCount,
  truncated: fc.option(fc.double({ min: 0, max: 1, noNaN: true })),
  appendAfter: smallCount,
  turnsAfter: smallCount,
  isKilled: fc.boolean(),
});

const waitTurns = async (turns: number) => {
  for (let i = 0; i < turns; i++) await nextTurn();
};

function createBench() {
  const { log, append } = openFilledLog(TOPIC);
  const store = new TokenStore();
  store.onWrite = async () => void (await nextTurn());
  let divergesAt = 0;
  const truncate = (fraction: number) => {
    divergesAt = Math.floor(log.records(TOPIC).length * (1 - fraction));
    log.truncate(TOPIC, 0, divergesAt);
  };
  const limits = { rowsMax: 3, bytesMax: 1_000_000, ageMaxMs: 1 };
  const open = (overrides: { limits?: BlockLimits } = {}) =>
    log.openBlockConsumer({ topics: [TOPIC], sink: createTokenSink(store), limits, ...overrides });
  /** Resolves a paused partition, as the operator's command does by default. */
  const decideIfPaused = async (consumer: MemoryConsumer) => {
    await consumer.idle();
    if (consumer.ready()) return consumer;
    await consumer.close();
    log.decide({ topic: TOPIC, partition: 0, from: Math.min(divergesAt, log.committed(TOPIC, 0)) });
    const next = open();
    for (let i = 0; i < 1_000 && !next.ready(); i++) await nextTurn();
    return next;
  };
  return { log, store, append, truncate, open, decideIfPaused };
}

async function run(runs: readonly ConsumerRun[]) {
  const { log, store, append, truncate, open, decideIfPaused } = createBench();
  for (const { append: before, turns, truncated, appendAfter, turnsAfter, isKilled } of runs) {
    let consumer = open();
    await append(before);
    await waitTurns(turns);
    if (truncated !== null && log.records(TOPIC).length > 0) truncate(truncated);
    await append(appendAfter);
    await waitTurns(turnsAfter);
    if (isKilled) consumer.kill();
    else await consumer.close();
    consumer = await decideIfPaused(open());
    await consumer.close();
  }
  const last = await decideIfPaused(open());
  await last.idle();
  const isReady = last.ready();
  await last.close();
  return { isReady, log: log.records(TOPIC).map(({ value }) => `${value}`), rows: store.rows.map(({ text }) => text) };
}

it('every record of a repeatedly truncated log is stored exactly once after operator decisions', async () => {
  const property = fc.asyncProperty(fc.array(consumerRun, { minLength: 1, maxLength: 4 }), async (runs) => {
    const { isReady, log, rows } = await run(runs);
    expect(isReady).toBe(true);
    expect(log.filter((text) => !rows.includes(text))).toEqual([]);
    expect(rows.length - new Set(rows).size).toBe(0);
  });
  await fc.assert(property, { numRuns: runsOf({ quick: 100, all: 300 }) });
});

const LIMITS = { rowsMax: 4, bytesMax: 1_000_000, ageMaxMs: 1 };

/** Stores four rows of a block that is not completed, then truncates the log to `retained` of their records. */
async function truncateOpenBlock(retained: number) {
  const bench = createBench();
  const { log, store, append } = bench;
  await append(4);
  const killedConsumer = bench.open({ limits: LIMITS });
  store.onWrite = (_block, phase) => {
    if (phase === 'after') killedConsumer.kill();
  };
  await until('the rows are stored', () => store.rows.length === 4);
  store.onWrite = async () => void (await nextTurn());
  log.truncate(TOPIC, 0, retained);
  await append(4);
  return bench;
}

it('a decision about a log truncated within an open block neither duplicates rows nor skips records', async () => {
  const property = fc.asyncProperty(
    fc.integer({ min: 0, max: 3 }),
    fc.integer({ min: 1, max: 5 }),
    // Long enough for one or two blocks after the decision. The next owner learns of the decision only from the commit.
    fc.array(fc.integer({ min: 0, max: 40 }), { maxLength: 3 }),
    async (retained, rowsMax, kills) => {
      const { log, store, open } = await truncateOpenBlock(retained);
      log.decide({ topic: TOPIC, partition: 0, from: 0 });
      const reopen = () => open({ limits: { ...LIMITS, rowsMax } });
      for (const turns of kills) {
        const consumer = reopen();
        await waitTurns(turns);
        consumer.kill();
      }
      const last = reopen();
      await until('the consumer is ready', () => last.ready());
      await last.idle();
      await last.close();
      const records = log.records(TOPIC).map(({ value }) => `${value}`);
      const rows = store.rows.map(({ text }) => text);
      expect(rows.filter((text) => records.includes(text)).sort()).toEqual(records.sort());
    },
  );
  await fc.assert(property, { numRuns: 60 });
});

it.each([
  ['all read records', { start: 3, unread: 0 }],
  ['read and unread records', { start: 5, unread: 4 }],
])('a consumer continues after retention deleted %s and the leader changed', async (_, { start, unread }) => {
  const { log, store, append, open } = createBench();
  await append(3);
  const previous = open();
  await previous.idle();
  await previous.close();
  await append(unread);
  log.expire(TOPIC, 0, start);
  // Removes no records, but starts a new leader epoch.
  log.truncate(TOPIC, 0, 3 + unread);
  await append(2);
  const consumer = open();
  await until(
    'the remaining records are stored',
    () => store.offsets(TOPIC).at(-1) === `0/${log.records(TOPIC).length - 1}`,
  );
  expect(consumer.ready()).toBe(true);
  await consumer.close();
  expect(store.rows).toHaveLength(log.records(TOPIC).length - (start - 3));
});

it('a running consumer continues after retention deleted all read records and the leader changed', async () => {
  const { log, store, append, open } = createBench();
  const consumer = open();
  await append(3);
  await consumer.idle();
  log.expire(TOPIC, 0, 3);
  log.truncate(TOPIC, 0, 3);
  await append(2);
  await until('the remaining records are stored', () => store.rows.length === 5);
  await consumer.close();
});
