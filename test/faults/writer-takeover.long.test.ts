import { testStores } from '@playline/testkit';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { freezeWriter } from './writer-freeze.ts';
import { rebalanceWriters } from './writer-rebalance.ts';
import { openWriterRig, type WriterRig } from './writer-rig.ts';

/** Freezes and kills of members last longer. Heartbeats on a busy machine arrive in time. */
const SESSION_TIMEOUT_MS = 1_500;
/** Several sessions expire in one seed, which takes several times as long on a busy machine. */
const SEED_MAX_MS = 400_000;

describe('writers of one group', () => {
  let rig: WriterRig;

  beforeAll(async () => {
    rig = await openWriterRig(testStores(), { partitions: 4, sessionTimeoutMs: SESSION_TIMEOUT_MS });
  });
  afterAll(() => rig.close());

  it.each([0, 3])(
    'store every record once when one is frozen past its session, replaced and woken (seed %i)',
    async (seed) => void (await freezeWriter(rig, seed)),
    SEED_MAX_MS,
  );

  it.each([1, 2])(
    'store every record once when they join, leave and die during inserts (seed %i)',
    async (seed) => void (await rebalanceWriters(rig, seed)),
    SEED_MAX_MS,
  );
});
