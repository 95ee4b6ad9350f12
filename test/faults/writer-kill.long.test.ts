import { testStores } from '@playline/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createKillRun, type KillRun, planKill } from './writer-kill.ts';
import { KILL_POINTS } from './writer-kill-points.ts';
import { openWriterRig, WRITER_WITHOUT_INTENTS, type WriterRig } from './writer-rig.ts';

/** Short, because every kill waits for it, but long enough for heartbeats on a busy machine. */
const SESSION_TIMEOUT_MS = 1_500;
/** A kill takes seconds, and several times that on a busy machine. */
const SEED_MAX_MS = 400_000;

describe('a writer that is killed', () => {
  let rig: WriterRig;
  let run: KillRun;

  beforeAll(async () => {
    rig = await openWriterRig(testStores(), { partitions: 2, sessionTimeoutMs: SESSION_TIMEOUT_MS });
    run = createKillRun(rig);
  });
  afterAll(() => rig.close());

  it.each(KILL_POINTS.map((point, seed) => [point, seed] as const))(
    '%s leaves every record in the table once (seed %i)',
    async (point, seed) => {
      // A waiting successor may get the partitions before the writer reaches this point. The writer then dies
      // elsewhere.
      const plan = { ...planKill(seed), passages: 0, isOnStandby: point === 'at any moment' };
      expect(await run.run(plan)).toEqual({ differences: [], reached: true });
    },
    SEED_MAX_MS,
  );

  it('leaves nothing that the verifier reports as a fault', async () => {
    const { code, lines } = await rig.operate('verify', '--group', rig.group);
    expect(code).toBe(0);
    expect(lines.join('\n')).not.toContain('more than one raw row');
  });
});

describe('a writer without intents', () => {
  it(
    'stores rows twice when it is killed between insert and commit, so the tests above can fail',
    async () => {
      const rig = await openWriterRig(testStores(), { partitions: 2, sessionTimeoutMs: SESSION_TIMEOUT_MS });
      try {
        const run = createKillRun(rig, WRITER_WITHOUT_INTENTS);
        const plan = planKill(4, 'after the insert was acknowledged, before the commit');
        expect((await run.run({ ...plan, passages: 0, isOnStandby: false })).differences).not.toEqual([]);
        // Readers of events_exact see each message once. So the verifier reports the doubled rows without counting them
        // as a difference.
        const { code, lines } = await rig.operate('verify', '--group', rig.group);
        expect(code).toBe(0);
        expect(lines.join('\n')).toMatch(/\d+ records are in more than one raw row of events/);
      } finally {
        await rig.close();
      }
    },
    SEED_MAX_MS,
  );
});
