import { testStores } from '@playline/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SESSION_TIMEOUT_MS as sessionTimeoutMs } from './writer-faults.ts';
import { createKillRun, planKill } from './writer-kill.ts';
import { KILL_POINTS } from './writer-kill-points.ts';
import { openWriterRig, WRITER_WITHOUT_INTENTS, type WriterRig } from './writer-rig.ts';

/** A kill takes seconds, and several times that on a busy machine. */
const SEED_MAX_MS = 400_000;

describe('a writer that is killed', () => {
  let rig: WriterRig;
  let run: ReturnType<typeof createKillRun>;

  beforeAll(async () => {
    rig = await openWriterRig(testStores(), { partitions: 2, sessionTimeoutMs });
    run = createKillRun(rig);
  });
  afterAll(() => rig.close());

  it.each(KILL_POINTS.map((point, seed) => [point, seed] as const))(
    '%s leaves every record in the table once (seed %i)',
    async (point, seed) => {
      // A waiting successor may get the partitions before the writer reaches this point.
      const plan = { ...planKill(seed), passages: 0, isOnStandby: point === 'at any moment' };
      expect(await run(plan)).toEqual({ differences: [], reached: true });
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
      const rig = await openWriterRig(testStores(), { partitions: 2, sessionTimeoutMs });
      try {
        const run = createKillRun(rig, WRITER_WITHOUT_INTENTS);
        const plan = planKill(4, 'after the insert was acknowledged, before the commit');
        expect((await run({ ...plan, passages: 0, isOnStandby: false })).differences).not.toEqual([]);
        // Readers of events_exact see each message once, so the verifier reports no difference.
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
