import { testStores } from '@playline/testkit';
import { describe, it } from 'vitest';
import { poisonWriter } from './writer-poison.ts';
import { replayLetters } from './writer-replay.ts';
import { openWriterRig, type WriterRig } from './writer-rig.ts';

const SESSION_TIMEOUT_MS = 2_000;
const SEED_MAX_MS = 400_000;

/** A separate rig, so that poisoned records of one test are not rows of the next. */
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
    'is kept as it was, with the reason, and holds nothing up, also when the writer is killed',
    () => onRig((rig) => poisonWriter(rig, 1)),
    SEED_MAX_MS,
  );

  it(
    'is stored once when it is replayed by a command that is killed in the midst of it',
    () => onRig((rig) => replayLetters(rig, 1)),
    SEED_MAX_MS,
  );
});
