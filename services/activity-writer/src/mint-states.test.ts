import { createMemoryMints, type MemoryMints } from '@playline/mints/memory';
import { createLogger, createMetrics } from '@playline/runtime';
import { until } from '@playline/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type MintStates, openMintStates } from './mint-states.ts';

const NEVER_MS = 1_000_000;

let mints: MemoryMints;
let states: MintStates;
let reads = 0;
let requests = 0;
let isBehind = false;
const open = (idleMs: number) => {
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
    intervals: { pollMs: 5, checkMs: 5, idleMs },
    log: { bounds, read: async function* () {} },
    logger: createLogger({ service: 'test', level: 'fatal' }),
    metrics: createMetrics('test'),
  });
};
const expectIdle = async (expected = 1) => {
  await until('the logs are read', () => reads === expected);
  const before = requests;
  await until('Redis is queried several times', () => requests > before + 10);
  expect(reads).toBe(expected);
};
beforeEach(() => {
  mints = createMemoryMints();
  [reads, requests, isBehind] = [0, 0, false];
});
afterEach(() => states.close());

it('mint logs without new records are read only at a fixed interval', async () => {
  open(NEVER_MS);
  await expectIdle();
  await states.close();
  reads = 0;
  open(300);
  await until('the logs are read at the interval', () => reads > 3);
  expect(requests).toBeGreaterThan(3 * reads);
});

it('mint logs are read once after a record is consumed, and repeatedly while records are waiting', async () => {
  open(NEVER_MS);
  await expectIdle();
  states.wake();
  await expectIdle(2);
  isBehind = true;
  await until('the logs are read repeatedly', () => reads > 10);
});

it('mint logs are read after a restart of Redis, which completes the mint states again', async () => {
  open(NEVER_MS);
  await expectIdle();
  mints.restart({ isEmptied: true });
  await until('the mint states are complete', async () => {
    const { run, completeIn } = await mints.view.progress();
    return completeIn === run;
  });
});
