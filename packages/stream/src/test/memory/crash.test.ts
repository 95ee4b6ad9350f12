import { setImmediate as turn } from 'node:timers/promises';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type IntentPolicy, KEEP_INTENTS } from '../../partitions/intent.ts';
import { NO_INTENTS } from '../no-intents.ts';
import { send } from '../producer-contract.ts';
import { createTokenSink, type InsertOutcome, TokenStore } from '../token-store.ts';
import { createMemoryLog } from './index.ts';

const TOPIC = 'topic';
const RECORDS = 60;

interface Life {
  rowsMax: number;
  /** Turns of the loop until the consumer is killed. */
  turns: number;
  /** Results of the inserts of this life; later inserts are stored. */
  fates: InsertOutcome[];
  /** Most rows per insert in this life. */
  storeRowsMax: number;
}

const life: fc.Arbitrary<Life> = fc.record({
  rowsMax: fc.integer({ min: 1, max: 15 }),
  turns: fc.integer({ min: 0, max: 25 }),
  fates: fc.array(fc.constantFrom<InsertOutcome>('stored', 'refused', 'halfway', 'unanswered', 'forgotten', 'broken'), {
    maxLength: 8,
  }),
  storeRowsMax: fc.constantFrom(1, 2, 5, 100),
});
/** No waits, so that each run has many attempts. */
const waits = { attempt: { minMs: 0, maxMs: 0 }, pause: { minMs: 0, maxMs: 0 } };

/** Consumers that are killed one after the other, then one that may finish. @returns the offsets in the store */
async function consume(
  lives: readonly Life[],
  { intents = KEEP_INTENTS, withoutLook = false }: { intents?: IntentPolicy; withoutLook?: boolean } = {},
): Promise<{ found: string[]; expected: string[] }> {
  const log = createMemoryLog({ partitions: 2 });
  const producer = log.openProducer();
  const sends = Array.from({ length: RECORDS }, (_, i) =>
    send(producer, [{ topic: TOPIC, key: null, value: Buffer.from(`row ${i}`) }]),
  );
  await Promise.all(sends);
  const store = new TokenStore();
  store.trustsAcknowledgements = withoutLook;
  const open = ({ rowsMax, fates, storeRowsMax }: Life) => {
    const left = [...fates];
    store.rowsMax = storeRowsMax;
    store.onWrite = async () => await turn();
    store.onInsert = async () => {
      await turn();
      return left.shift() ?? 'stored';
    };
    const limits = { rowsMax, bytesMax: 1_000_000, ageMaxMs: 1 };
    return log.openBlockConsumer({ topics: [TOPIC], sink: createTokenSink(store), limits, intents, waits });
  };
  for (const each of lives) {
    const consumer = open(each);
    for (let i = 0; i < each.turns; i++) await turn();
    consumer.kill();
    // a write in flight still reaches the store, before or after the next consumer starts
    if (each.turns % 2 === 0) for (let i = 0; i < 5; i++) await turn();
  }
  const last = open({
    rowsMax: 9,
    turns: 0,
    fates: lives.at(-1)?.fates ?? [],
    storeRowsMax: lives.at(-1)?.storeRowsMax ?? 1,
  });
  await last.idle({ stopped: true });
  await last.close();
  expect(store.misuse).toEqual([]);
  const expected = log.records(TOPIC).map(({ partition, offset }) => `${partition}/${offset}`);
  return { found: store.offsets(TOPIC), expected };
}

describe('consumers that are killed at any step, with a store that fails in every way, forgets rows and takes few', () => {
  it('store every record once', async () => {
    const property = fc.asyncProperty(fc.array(life, { minLength: 1, maxLength: 4 }), async (lives) => {
      const { found, expected } = await consume(lives);
      expect(found).toEqual(expected);
    });
    await fc.assert(property, { numRuns: runsOf({ quick: 40, all: 100 }) });
  });

  it('double records without intents: the test above can fail', async () => {
    const property = fc.asyncProperty(fc.array(life, { minLength: 1, maxLength: 4 }), async (lives) => {
      const { found, expected } = await consume(lives, { intents: NO_INTENTS });
      return found.length === expected.length;
    });
    await expect(fc.assert(property, { numRuns: 100 })).rejects.toThrow('Property failed');
  });

  it('lose records when nobody reads which rows are stored: the test above can fail', async () => {
    const property = fc.asyncProperty(fc.array(life, { minLength: 1, maxLength: 4 }), async (lives) => {
      const forgetful = lives.map((each) => ({ ...each, storeRowsMax: 100 }));
      const { found, expected } = await consume(forgetful, { withoutLook: true });
      return found.length === expected.length;
    });
    await expect(fc.assert(property, { numRuns: 200, endOnFailure: true })).rejects.toThrow('Property failed');
  });
});
