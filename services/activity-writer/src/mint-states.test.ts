import { createMemoryMints, type MemoryMints } from '@playline/mints/memory';
import { createLogger, createMetrics } from '@playline/runtime';
import { until } from '@playline/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type MintStates, openMintStates } from './mint-states.ts';

/** Longer than any test runs. */
const NEVER_MS = 1_000_000;

describe('the logs of mints', () => {
  let mints: MemoryMints;
  let states: MintStates;
  /** Number of requests to the brokers. */
  let looks = 0;
  /** Number of requests to Redis. */
  let questions = 0;
  let isBehind = false;
  const open = (restMs: number) => {
    const { view } = mints;
    const bounds = async (topic: string) => {
      if (topic === 'chain.mint-state.v1') looks++;
      return [{ partition: 0, start: 0, end: 0 }];
    };
    const standing = () => {
      questions++;
      return view.progress();
    };
    states = openMintStates({
      view: { ...view, progress: standing },
      isBehind: () => isBehind,
      schemaOf: async () => null,
      topicPrefix: '',
      intervals: { pollMs: 5, checkMs: 5, restMs },
      log: { bounds, read: async function* () {} },
      logger: createLogger({ service: 'test', level: 'fatal' }),
      metrics: createMetrics('test'),
    });
  };
  const atRest = async () => {
    await until('the first look', () => looks === 1);
    const before = questions;
    await until('some questions to Redis', () => questions > before + 10);
    expect(looks).toBe(1);
  };
  beforeEach(() => {
    mints = createMemoryMints();
    [looks, questions, isBehind] = [0, 0, false];
  });
  afterEach(() => states.close());

  it('are not read at each look while nothing says that they have more, but after a while in any case', async () => {
    open(NEVER_MS);
    await atRest();
    await states.close();
    looks = 0;
    open(300);
    await until('looks that nobody asked for', () => looks > 3);
    expect(questions).toBeGreaterThan(3 * looks);
  });

  it('are read once after a record of theirs was consumed', async () => {
    open(NEVER_MS);
    await atRest();
    states.wake();
    await until('a look', () => looks === 2);
    const before = questions;
    await until('some questions to Redis', () => questions > before + 10);
    expect(looks).toBe(2);
  });

  it('are read each time while records of theirs wait to be consumed', async () => {
    open(NEVER_MS);
    await atRest();
    isBehind = true;
    await until('looks', () => looks > 10);
  });

  it('are read after a restart of the store, which is complete again afterwards', async () => {
    open(NEVER_MS);
    await atRest();
    mints.restart({ isEmptied: true });
    await until('a look', () => looks === 2);
    await until('a whole view', async () => {
      const { run, completeIn } = await mints.view.progress();
      return completeIn === run;
    });
  });
});
