import { setTimeout as delay } from 'node:timers/promises';
import { until } from '@playline/testkit';
import { createRandom } from '../../services/operator/src/simulate/random.ts';
import { WAIT_MAX_MS } from './writer-exact.ts';
import { KILL_POINTS, type KillPoint, setTrap, type Trap } from './writer-kill-points.ts';
import type { GatedProcess } from './writer-process.ts';
import { type Difference, EVENT_WRITER, type WriterRig } from './writer-rig.ts';

export interface KillPlan {
  readonly seed: number;
  readonly point: KillPoint;
  /** So many passages of the point go by before the one that kills. */
  readonly passages: number;
  /**
   * What the killed writer had sent reaches its store only after the successor has finished, like a packet that was
   * delayed.
   */
  readonly arrivesLate: boolean;
  /** The connection to the engine breaks off with the writer; otherwise the engine goes on reading the insert. */
  readonly breaksOff: boolean;
  /** The successor is a member of the group already; otherwise it is started after the kill. */
  readonly standsBy: boolean;
  readonly messages: number;
  /**
   * Block sizes of the writer and of its successor. With equal blocks even a writer without intents would look exact.
   */
  readonly blockRowsMax: readonly [number, number];
  /** When the writer is killed at any moment: so long after the first message. Messages come until then. */
  readonly momentMs: number;
}

/** Many small blocks, so that every point is passed several times. */
const BLOCK_ROWS = { min: 10, max: 40 };
/** Times the number of records that one call to the producer publishes. */
const RUNS = { min: 10, max: 20, records: 20 };
const MOMENT_MAX_MS = 400;
const HEIR_WAITS_SHARE = 0.3;

/** Every point comes in turn; the rest is drawn from the seed. */
export function planKill(seed: number, point: KillPoint = KILL_POINTS[seed % KILL_POINTS.length]!): KillPlan {
  const random = createRandom(seed);
  const rows = () => random.integer(BLOCK_ROWS.min, BLOCK_ROWS.max);
  return {
    seed,
    point,
    passages: random.integer(0, 2),
    arrivesLate: random.chance(0.5),
    breaksOff: random.chance(0.5),
    standsBy: random.chance(HEIR_WAITS_SHARE),
    messages: random.integer(RUNS.min, RUNS.max) * RUNS.records,
    blockRowsMax: [rows(), rows()],
    momentMs: random.integer(0, MOMENT_MAX_MS),
  };
}

export interface KillResult {
  /** What is stored and should not be, or is missing; empty when every record is one row. */
  readonly differences: Difference[];
  /** Whether the writer was killed at the point or, at any moment, with work left; false when it had finished before. */
  readonly reached: boolean;
}

/** Kills the writers of one rig one after the other, each by a plan: the successor of one is killed next. */
export interface KillRun {
  run(plan: KillPlan): Promise<KillResult>;
}

export function createKillRun(rig: WriterRig, file = EVENT_WRITER): KillRun {
  let writer: GatedProcess | null = null;
  const start = async (rowsMax: number) => rig.startWriter({ BLOCK_ROWS_MAX: String(rowsMax) }, file);
  const whenReady = (what: string, process: GatedProcess) => until(what, () => process.isReady(), WAIT_MAX_MS);
  return {
    async run(plan) {
      const [rowsMax, heirRowsMax] = plan.blockRowsMax;
      const victim = writer ?? (await start(rowsMax));
      await whenReady('the writer is ready', victim);
      let heir = plan.standsBy ? await start(heirRowsMax) : null;
      if (heir !== null) await whenReady('the heir is ready', heir);
      const trap = setTrap(victim, plan);
      const publish = () => rig.publishMessages(`test-kill-${plan.seed}`, plan.messages);
      const isMoment = plan.point === 'at any moment';
      const reached = isMoment
        ? await killAtMoment(rig, { victim, publish, momentMs: plan.momentMs })
        : await killAtPoint(rig, { victim, publish, trap });
      if (!plan.arrivesLate) trap.release();
      heir ??= await start(heirRowsMax);
      writer = heir;
      await rig.caughtUp(WAIT_MAX_MS);
      trap.release();
      await Promise.all([victim.kafka.settled(), victim.clickhouse.settled()]);
      await victim.close();
      // A late commit that was accepted would have taken the group back.
      await rig.caughtUp(WAIT_MAX_MS);
      return { differences: await rig.differences(), reached };
    },
  };
}

interface Killing {
  readonly victim: GatedProcess;
  publish(): Promise<void>;
}

/** Messages come until the kill, so that the writer is in the midst of some block. @returns whether work was left */
async function killAtMoment(rig: WriterRig, { victim, publish, momentMs }: Killing & { momentMs: number }) {
  // Looked at twice: at first there may be nothing new yet, and later a successor that was waiting may have done it
  // all.
  const leftAtOnce = delay(momentMs)
    .then(() => victim.kill())
    .then(() => rig.lag());
  do await publish();
  while (!victim.gone);
  const leftBehind = await rig.lag();
  return (await leftAtOnce) + leftBehind > 0;
}

/**
 * @returns false when the writers have finished first: a successor that waits may have taken the partition where the point
 * was
 */
async function killAtPoint(rig: WriterRig, { victim, publish, trap }: Killing & { trap: Trap }) {
  await publish();
  const caughtUp = rig.caughtUp(WAIT_MAX_MS).then(
    () => false,
    () => false,
  );
  const isReached = await Promise.race([trap.reached.then(() => true), caughtUp]);
  await victim.kill();
  return isReached;
}
