import { testStores } from '@playline/testkit';
import { describe, it } from 'vitest';
import { poisonWriter } from './writer-poison.ts';
import { replayDeadLetters } from './writer-replay.ts';
import { openWriterRig, type WriterRig } from './writer-rig.ts';

const SESSION_TIMEOUT_MS = 2_000;
const SEED_MAX_MS = 400_000;

/** A separate rig, so that broken records of one test are no rows of the next. */
async function onRig(work: (rig: WriterRig) => Promise<unknown>): Promise<void> {
  const rig = await openWriterRig(testStores(), { partitions: 2, sessionTimeoutMs: SESSION_TIMEOUT_MS });
  try {
    await work(rig);
  } finally {
    await rig.close();
  }
}

describe('a record that cannot be read', () => {
  it(
    'becomes an unchanged dead letter with the reason, and delays no other record, also when the writer is killed',
    () => onRig((rig) => poisonWriter(rig, 1)),
    SEED_MAX_MS,
  );

  it(
    'is stored once when the command that replays it is killed in the middle',
    () => onRig((rig) => replayDeadLetters(rig, 1)),
    SEED_MAX_MS,
  );
});
