import { testStores } from '@playline/testkit';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { overloadPartition } from './writer-hot.ts';
import { openWriterRig, type WriterRig } from './writer-rig.ts';

const SESSION_TIMEOUT_MS = 2_000;
const SEED_MAX_MS = 400_000;

describe('a writer', () => {
  let rig: WriterRig;

  beforeAll(async () => {
    rig = await openWriterRig(testStores(), { partitions: 6, sessionTimeoutMs: SESSION_TIMEOUT_MS });
  });
  afterAll(() => rig.close());

  it(
    'keeps up on all other partitions while one identity has half of the traffic and inserts of its partition are blocked',
    () => overloadPartition(rig, 1),
    SEED_MAX_MS,
  );
});
