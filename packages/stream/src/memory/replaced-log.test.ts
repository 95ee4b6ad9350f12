import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createTokenSink, TokenStore } from '../test/token-store.ts';
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
  /** The first record that a later leader appended than the one whose records were lost last. */
  let partsAt = 0;
  const lose = (part: number) => {
    partsAt = Math.floor(log.records(TOPIC).length * (1 - part));
    log.truncate(TOPIC, 0, partsAt);
  };
  const limits = { rowsMax: 3, bytesMax: 1_000_000, ageMaxMs: 1 };
  const open = () => log.openBlockConsumer({ topics: [TOPIC], sink: createTokenSink(store), limits });
  /** An operator who looks whether partitions stand, and decides as the command's default does. */
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
  it('is stored whole and once in the end, by consumers that are killed as well, when an operator decides', async () => {
    const property = fc.asyncProperty(fc.array(life, { minLength: 1, maxLength: 4 }), async (lives) => {
      const { isReady, log, rows } = await run(lives);
      expect(isReady).toBe(true);
      expect(log.filter((text) => !rows.includes(text))).toEqual([]);
      expect(rows.length - new Set(rows).size).toBe(0);
    });
    await fc.assert(property, { numRuns: 300 });
  });
});
