import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RetryableFault } from '../ports.ts';
import { send } from '../test/producer-contract.ts';
import { createTokenSink, TokenStore } from '../test/token-store.ts';
import { createMemoryLog } from './index.ts';

const TOPIC = 'topic';
const RECORDS = 60;

interface Life {
  rowsMax: number;
  /** Turns of the loop until the consumer is killed. */
  turns: number;
  /** Answers of the store that are lost in this life. */
  lost: number;
}

const life: fc.Arbitrary<Life> = fc.record({
  rowsMax: fc.integer({ min: 1, max: 15 }),
  turns: fc.integer({ min: 0, max: 25 }),
  lost: fc.integer({ min: 0, max: 1 }),
});

/** Consumers that are killed one after the other, then one that may finish. @returns the offsets in the store */
async function consume(
  lives: readonly Life[],
  withoutIntents: boolean,
): Promise<{ found: string[]; expected: string[] }> {
  const log = createMemoryLog({ partitions: 2 });
  const producer = log.openProducer();
  const sends = Array.from({ length: RECORDS }, (_, i) =>
    send(producer, [{ topic: TOPIC, key: null, value: Buffer.from(`row ${i}`) }]),
  );
  await Promise.all(sends);
  const store = new TokenStore();
  const open = ({ rowsMax, lost }: Life) => {
    let faults = lost;
    store.onWrite = async (_name, moment) => {
      await turn();
      if (moment === 'after' && faults-- > 0) throw new RetryableFault('the answer was lost');
    };
    const limits = { rowsMax, bytesMax: 1_000_000, ageMaxMs: 1 };
    return log.openBlockConsumer({ topics: [TOPIC], sink: createTokenSink(store), limits, withoutIntents });
  };
  for (const each of lives) {
    const consumer = open(each);
    for (let i = 0; i < each.turns; i++) await turn();
    consumer.kill();
    // a write under way still arrives at the store, before or after the next consumer starts
    if (each.turns % 2 === 0) for (let i = 0; i < 5; i++) await turn();
  }
  const last = open({ rowsMax: 9, turns: 0, lost: 0 });
  await last.idle();
  await last.close();
  expect(store.misuse).toEqual([]);
  const expected = log.records(TOPIC).map(({ partition, offset }) => `${partition}/${offset}`);
  return { found: store.offsets(TOPIC), expected };
}

describe('consumers that are killed at any step', () => {
  it('store every record once', async () => {
    const property = fc.asyncProperty(fc.array(life, { minLength: 1, maxLength: 4 }), async (lives) => {
      const { found, expected } = await consume(lives, false);
      expect(found).toEqual(expected);
    });
    await fc.assert(property, { numRuns: 200 });
  });

  it('double records without intents: the test above can fail', async () => {
    const property = fc.asyncProperty(fc.array(life, { minLength: 1, maxLength: 4 }), async (lives) => {
      const { found, expected } = await consume(lives, true);
      return found.length === expected.length;
    });
    await expect(fc.assert(property, { numRuns: 200 })).rejects.toThrow('Property failed');
  });
});
