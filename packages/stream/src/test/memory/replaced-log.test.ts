import { setImmediate as turn } from 'node:timers/promises';
import { until } from '@playline/testkit';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { BlockLimits } from '../../ports.ts';
import { createTokenSink, TokenStore } from '../token-store.ts';
import { createMemoryLog, type MemoryConsumer } from './index.ts';

const TOPIC = 'topic';

/** What happens while a consumer runs, in this order. */
interface Life {
  append: number;
  turns: number;
  /** The part of the log that is lost; null when nothing is. */
  lost: number | null;
  appendAfter: number;
  turnsAfter: number;
  isKilled: boolean;
}

const few = fc.integer({ min: 0, max: 12 });
const life: fc.Arbitrary<Life> = fc.record({
  append: few,
  turns: few,
  lost: fc.option(fc.double({ min: 0, max: 1, noNaN: true })),
  appendAfter: few,
  turnsAfter: few,
  isKilled: fc.boolean(),
});

const pass = async (turns: number) => {
  for (let i = 0; i < turns; i++) await turn();
};

function createBench() {
  const log = createMemoryLog({ partitions: 1 });
  const producer = log.openProducer();
  const store = new TokenStore();
  store.onWrite = async () => void (await turn());
  let sent = 0;
  const append = async (count: number) => {
    for (let i = 0; i < count; i++)
      await new Promise<void>((resolve) =>
        producer.send([{ topic: TOPIC, key: null, value: Buffer.from(`record ${sent++}`) }], () => resolve()),
      );
  };
  /** First record that was appended after the last loss. */
  let partsAt = 0;
  const lose = (part: number) => {
    partsAt = Math.floor(log.records(TOPIC).length * (1 - part));
    log.truncate(TOPIC, 0, partsAt);
  };
  const limits = { rowsMax: 3, bytesMax: 1_000_000, ageMaxMs: 1 };
  const open = (over: { limits?: BlockLimits } = {}) =>
    log.openBlockConsumer({ topics: [TOPIC], sink: createTokenSink(store), limits, ...over });
  /** Simulates an operator who decides with the defaults of the command when a partition stands. */
  const decideIfStanding = async (consumer: MemoryConsumer) => {
    await consumer.idle();
    if (consumer.ready()) return consumer;
    await consumer.close();
    log.decide({ topic: TOPIC, partition: 0, from: Math.min(partsAt, log.committed(TOPIC, 0)) });
    const next = open();
    for (let i = 0; i < 1_000 && !next.ready(); i++) await turn();
    return next;
  };
  return { log, store, append, lose, open, decideIfStanding };
}

async function run(lives: readonly Life[]) {
  const { log, store, append, lose, open, decideIfStanding } = createBench();
  for (const { append: before, turns, lost, appendAfter, turnsAfter, isKilled } of lives) {
    let consumer = open();
    await append(before);
    await pass(turns);
    if (lost !== null && log.records(TOPIC).length > 0) lose(lost);
    await append(appendAfter);
    await pass(turnsAfter);
    if (isKilled) consumer.kill();
    else await consumer.close();
    consumer = await decideIfStanding(open());
    await consumer.close();
  }
  const last = await decideIfStanding(open());
  await last.idle();
  const isReady = last.ready();
  await last.close();
  return { isReady, log: log.records(TOPIC).map(({ value }) => `${value}`), rows: store.rows.map(({ text }) => text) };
}

describe('a log that loses its end again and again', () => {
  it('is stored completely and once in the end when an operator decides, also by consumers that are killed', async () => {
    const property = fc.asyncProperty(fc.array(life, { minLength: 1, maxLength: 4 }), async (lives) => {
      const { isReady, log, rows } = await run(lives);
      expect(isReady).toBe(true);
      expect(log.filter((text) => !rows.includes(text))).toEqual([]);
      expect(rows.length - new Set(rows).size).toBe(0);
    });
    await fc.assert(property, { numRuns: runsOf({ quick: 100, all: 300 }) });
  });
});

describe('a decision about a log that lost its end within a block whose owner died', () => {
  const limits = { rowsMax: 4, bytesMax: 1_000_000, ageMaxMs: 1 };

  /** Four rows of a named, uncompleted block are stored; the log keeps `kept` of their records. */
  async function loseWithin(kept: number) {
    const bench = createBench();
    const { log, store, append } = bench;
    await append(4);
    const dead = bench.open({ limits });
    store.onWrite = (_block, moment) => {
      if (moment === 'after') dead.kill();
    };
    await until('the rows stand', () => store.rows.length === 4);
    store.onWrite = async () => void (await turn());
    log.truncate(TOPIC, 0, kept);
    await append(4);
    return bench;
  }

  it('doubles no row of records that the log has kept, and leaves out no other, also when blocks are cut differently', async () => {
    const property = fc.asyncProperty(
      fc.integer({ min: 0, max: 3 }),
      fc.integer({ min: 1, max: 5 }),
      // Long enough for a block or two after the decision. The next owner knows the decision only from the commit.
      fc.array(fc.integer({ min: 0, max: 40 }), { maxLength: 3 }),
      async (kept, rowsMax, kills) => {
        const { log, store, open } = await loseWithin(kept);
        log.decide({ topic: TOPIC, partition: 0, from: 0 });
        const reopen = () => open({ limits: { ...limits, rowsMax } });
        for (const turns of kills) {
          const consumer = reopen();
          await pass(turns);
          consumer.kill();
        }
        const last = reopen();
        await until('it reads on', () => last.ready());
        await last.idle();
        await last.close();
        const records = log.records(TOPIC).map(({ value }) => `${value}`);
        const rows = store.rows.map(({ text }) => text);
        expect(rows.filter((text) => records.includes(text)).sort()).toEqual(records.sort());
      },
    );
    await fc.assert(property, { numRuns: 60 });
  });
});

describe('a log of which retention has taken the batch that was read last', () => {
  /**
   * Three records are read and committed. Then retention deletes the first `start` records, and another leader appends.
   */
  async function ageBetween({ start, unread }: { start: number; unread: number }) {
    const bench = createBench();
    await bench.append(3);
    const before = bench.open();
    await before.idle();
    await before.close();
    await bench.append(unread);
    bench.log.expire(TOPIC, 0, start);
    // Nothing is lost; this only starts a new leader epoch.
    bench.log.truncate(TOPIC, 0, 3 + unread);
    await bench.append(2);
    return bench;
  }

  it.each([
    ['all that was read', { start: 3, unread: 0 }],
    ['records that nobody has read as well', { start: 5, unread: 4 }],
  ])('and %s is read on behind the next leader', async (_, aged) => {
    const { log, store, open } = await ageBetween(aged);
    const consumer = open();
    await until('what is left is stored', () => store.offsets(TOPIC).at(-1) === `0/${log.records(TOPIC).length - 1}`);
    expect(consumer.ready()).toBe(true);
    await consumer.close();
    expect(store.rows).toHaveLength(log.records(TOPIC).length - (aged.start - 3));
  });

  it('is read on too when that happens while it is being read', async () => {
    const { log, store, append, open } = createBench();
    const consumer = open();
    await append(3);
    await consumer.idle();
    log.expire(TOPIC, 0, 3);
    log.truncate(TOPIC, 0, 3);
    await append(2);
    await until('what is left is stored', () => store.rows.length === 5);
    await consumer.close();
  });
});
