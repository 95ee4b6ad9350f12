import { setTimeout as delay } from 'node:timers/promises';
import { until } from '@playline/testkit';
import { createRandom } from '@playline/testkit/random';
import type { Reached } from './world/reached.ts';
import { assertExact, WAIT_MAX_MS } from './writer-exact.ts';
import { KILL_POINTS, setTrap } from './writer-kill-points.ts';
import type { WriterRig } from './writer-rig.ts';

const MESSAGES = 200;

/**
 * Freezes a writer for longer than its session. Another one takes over; then the first continues beside it.
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
  const isMoment = point === 'at any moment';
  // A writer that does not reach its point in five seconds is frozen wherever it is.
  const late = delay(isMoment ? random.integer(0, 300) : 5_000, isMoment);
  const isAtPoint = await Promise.race([trap.reached.then(() => true), late]);
  one.signal('SIGSTOP');
  await publish();
  // Only a takeover can commit everything, because the frozen writer still owns its partitions until then.
  await rig.caughtUp();
  trap.release();
  one.signal('SIGCONT');
  await publish();
  await rig.caughtUp();
  // The woken writer is a member again. If it writes its old block now, that is a fault.
  await until('the first is back', () => one.isReady(), WAIT_MAX_MS);
  await publish();
  await one.clickhouse.settled();
  await assertExact(rig);
  await Promise.all([one.stop(), other.stop()]);
  await Promise.all([one.close(), other.close()]);
  return { [`frozen ${point}`]: Number(isAtPoint) };
}
