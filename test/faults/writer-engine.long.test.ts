import { testStores } from '@playline/testkit';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { fillEngineWithParts, loseAnswers, takeEngineAway } from './writer-engine.ts';
import { openWriterRig, type WriterRig } from './writer-rig.ts';

const SESSION_TIMEOUT_MS = 2_000;
/** Long enough for some attempts of the writer, whose waits double. The command uses minutes. */
const AWAY_MS = 3_000;
const SEED_MAX_MS = 400_000;

describe('a writer whose ClickHouse', () => {
  let rig: WriterRig;

  beforeAll(async () => {
    rig = await openWriterRig(testStores(), { partitions: 2, sessionTimeoutMs: SESSION_TIMEOUT_MS });
  });
  afterAll(() => rig.close());

  it(
    'is down waits, reports it, and stores every record once when it is back',
    () => takeEngineAway(rig, { seed: 1, forMs: AWAY_MS }),
    SEED_MAX_MS,
  );

  it(
    'has too many parts waits until inserts are accepted again, and stores every record once',
    () => fillEngineWithParts(rig, 1),
    SEED_MAX_MS,
  );

  it(
    'stores a block but loses the answer repeats the block, and every record is stored once',
    () => loseAnswers(rig, 1),
    SEED_MAX_MS,
  );
});
