import { setImmediate as nextTurn } from 'node:timers/promises';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type IntentPolicy, KEEP_INTENTS } from '../../partitions/intent.ts';
import { NO_WAITS as waits } from '../fake-log.ts';
import { NO_INTENTS } from '../no-intents.ts';
import { send } from '../producer-contract.ts';
import { createTokenSink, type InsertOutcome, TokenStore } from '../token-store.ts';
import { createMemoryLog } from './index.ts';

const TOPIC = 'topic';
const RECORDS = 60;

interface ConsumerRun {
  rowsMax: number;
  turns: number;
  /** Outcomes of the inserts in this run. Later inserts are stored. */
  outcomes: InsertOutcome[];
  storeRowsMax: number;
}

const OUTCOMES = ['stored', 'refused', 'partial', 'response lost', 'token only', 'broken'] as const;
const consumerRun: fc.Arbitrary<ConsumerRun> = fc.record({
  rowsMax: fc.integer({ min: 1, max: 15 }),
  turns: fc.integer({ min: 0, max: 25 }),
  outcomes: fc.array(fc.constantFrom<InsertOutcome>(...OUTCOMES), { maxLength: 8 }),
  storeRowsMax: fc.constantFrom(1, 2, 5, 100),
});
const runList = fc.array(consumerRun, { minLength: 1, maxLength: 4 });

/** Kills consumers one after another, then runs a last consumer to the end. @returns the offsets in the store */
async function consume(
  runs: readonly ConsumerRun[],
  {
    intents = KEEP_INTENTS,
    trustsAcknowledgements = false,
  }: { intents?: IntentPolicy; trustsAcknowledgements?: boolean } = {},
): Promise<{ found: string[]; expected: string[] }> {
  const log = createMemoryLog({ partitions: 2 });
  const producer = log.openProducer();
  const sends = Array.from({ length: RECORDS }, (_, i) =>
    send(producer, [{ topic: TOPIC, key: null, value: Buffer.from(`row ${i}`) }]),
  );
  await Promise.all(sends);
  const store = new TokenStore();
  store.trustsAcknowledgements = trustsAcknowledgements;
  const open = ({ rowsMax, outcomes, storeRowsMax }: ConsumerRun) => {
    const remaining = [...outcomes];
    store.rowsMax = storeRowsMax;
    store.onWrite = async () => await nextTurn();
    store.onInsert = async () => {
      await nextTurn();
      return remaining.shift() ?? 'stored';
    };
    const limits = { rowsMax, bytesMax: 1_000_000, ageMaxMs: 1 };
    return log.openBlockConsumer({ topics: [TOPIC], sink: createTokenSink(store), limits, intents, waits });
  };
  for (const each of runs) {
    const consumer = open(each);
    for (let i = 0; i < each.turns; i++) await nextTurn();
    consumer.kill();
    // A write in flight may reach the store before or after the next consumer starts.
    if (each.turns % 2 === 0) for (let i = 0; i < 5; i++) await nextTurn();
  }
  const { outcomes = [], storeRowsMax = 1 } = runs.at(-1) ?? {};
  const last = open({ rowsMax: 9, turns: 0, outcomes, storeRowsMax });
  await last.idle({ stopped: true });
  await last.close();
  expect(store.misuse).toEqual([]);
  const expected = log.records(TOPIC).map(({ partition, offset }) => `${partition}/${offset}`);
  return { found: store.offsets(TOPIC), expected };
}

it('every record is stored once when consumers are killed at any step, for any insert outcomes', async () => {
  const property = fc.asyncProperty(runList, async (runs) => {
    const { found, expected } = await consume(runs);
    expect(found).toEqual(expected);
  });
  await fc.assert(property, { numRuns: runsOf({ quick: 40, all: 100 }) });
});

it.each([
  ['duplicated without intents', { intents: NO_INTENTS }],
  ['lost if stored rows are not read', { trustsAcknowledgements: true }],
])('the test with killed consumers detects records that are %s', async (_, policy) => {
  const property = fc.asyncProperty(runList, async (runs) => {
    const consumerRuns =
      'trustsAcknowledgements' in policy ? runs.map((each) => ({ ...each, storeRowsMax: 100 })) : runs;
    const { found, expected } = await consume(consumerRuns, policy);
    return found.length === expected.length;
  });
  await expect(fc.assert(property, { numRuns: 200, endOnFailure: true })).rejects.toThrow('Property failed');
});
