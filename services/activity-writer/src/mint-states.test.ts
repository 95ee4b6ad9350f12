import { createMemoryMints, type MemoryMints } from '@playline/mints/memory';
import { createLogger, createMetrics } from '@playline/runtime';
import { until } from '@playline/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type MintStates, openMintStates } from './mint-states.ts';

/** Longer than any test runs. */
const NEVER_MS = 1_000_000;

let mints: MemoryMints;
let states: MintStates;
/** Number of reads of the logs. */
let reads = 0;
/** Number of requests to Redis. */
let requests = 0;
let isBehind = false;
const open = (restMs: number) => {
  const { view } = mints;
  const bounds = async (topic: string) => {
    if (topic === 'chain.mint-state.v1') reads++;
    return [{ partition: 0, start: 0, end: 0 }];
  };
  const progress = () => {
    requests++;
    return view.progress();
  };
  states = openMintStates({
    view: { ...view, progress },
    isBehind: () => isBehind,
    schemaOf: async () => null,
    topicPrefix: '',
    intervals: { pollMs: 5, checkMs: 5, restMs },
    log: { bounds, read: async function* () {} },
    logger: createLogger({ service: 'test', level: 'fatal' }),
    metrics: createMetrics('test'),
  });
};
const expectIdle = async (expected = 1) => {
  await until('a read', () => reads === expected);
  const before = requests;
  await until('some requests to Redis', () => requests > before + 10);
  expect(reads).toBe(expected);
};
beforeEach(() => {
  mints = createMemoryMints();
  [reads, requests, isBehind] = [0, 0, false];
});
afterEach(() => states.close());

it('mint logs are not read while they have no new records, except after a fixed interval', async () => {
  open(NEVER_MS);
  await expectIdle();
  await states.close();
  reads = 0;
  open(300);
  await until('reads without a reason', () => reads > 3);
  expect(requests).toBeGreaterThan(3 * reads);
});

it('mint logs are read once after a record was consumed, and repeatedly while records wait', async () => {
  open(NEVER_MS);
  await expectIdle();
  states.wake();
  await expectIdle(2);
  isBehind = true;
  await until('repeated reads', () => reads > 10);
});

it('mint logs are read after a restart of the store, which is then complete again', async () => {
  open(NEVER_MS);
  await expectIdle();
  mints.restart({ isEmptied: true });
  await until('a complete view', async () => {
    const { run, completeIn } = await mints.view.progress();
    return completeIn === run;
  });
});
