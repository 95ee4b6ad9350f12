import { setTimeout as delay } from 'node:timers/promises';
import { until } from '@playline/testkit';
import { createRandom } from '@playline/testkit/random';
import type { Reached } from './world/reached.ts';
import { assertExact, WAIT_MAX_MS } from './writer-exact.ts';
import { KILL_POINTS, setTrap } from './writer-kill-points.ts';
import type { WriterRig } from './writer-rig.ts';

const MESSAGES = 200;
const MOMENT_MAX_MS = 300;
/** Longest wait for the point. After it, the writer is frozen wherever it is. */
const REACH_MAX_MS = 5_000;

/**
 * Freezes a writer for longer than its session, at a point or at any moment. Another one takes over and finishes. The
 * first wakes up in the middle of a request, or just before the answer, and continues beside the other.
 * @returns 0 for the point when the writer was frozen before it reached the point
 */
export async function freezeWriter(rig: WriterRig, seed: number): Promise<Reached> {
  const random = createRandom(seed);
  const point = KILL_POINTS[seed % KILL_POINTS.length]!;
  const rows = () => ({ BLOCK_ROWS_MAX: String(random.integer(10, 40)) });
  const publish = () => rig.publishMessages(`test-freeze-${seed}`, MESSAGES);
  const [one, other] = [await rig.startWriter(rows()), await rig.startWriter(rows())];
  await until('both are ready', async () => (await one.isReady()) && (await other.isReady()), WAIT_MAX_MS);
  const trap = setTrap(one, { point, passages: random.integer(0, 2), breaksOff: false });
  await publish();
  const frozenAfterMs = point === 'at any moment' ? random.integer(0, MOMENT_MAX_MS) : REACH_MAX_MS;
  const isAtPoint = await Promise.race([
    trap.reached.then(() => true),
    delay(frozenAfterMs, point === 'at any moment'),
  ]);
  one.signal('SIGSTOP');
  await publish();
  // Only a takeover can commit everything, because the frozen writer still owns its partitions until then.
  await rig.caughtUp(WAIT_MAX_MS);
  trap.release();
  one.signal('SIGCONT');
  await publish();
  await rig.caughtUp(WAIT_MAX_MS);
  // The woken writer is a member again. If it writes its old block now, that is a fault.
  await until('the first is back', () => one.isReady(), WAIT_MAX_MS);
  await publish();
  await one.clickhouse.settled();
  await assertExact(rig);
  await Promise.all([one.stop(), other.stop()]);
  await Promise.all([one.close(), other.close()]);
  return { [`frozen ${point}`]: Number(isAtPoint) };
}
