import { setTimeout as delay } from 'node:timers/promises';
import { until } from '@playline/testkit';
import { createRandom } from '@playline/testkit/random';
import { WAIT_MAX_MS } from './writer-exact.ts';
import { KILL_POINTS, type KillPoint, setTrap, type Trap } from './writer-kill-points.ts';
import type { GatedProcess } from './writer-process.ts';
import { EVENT_WRITER, type WriterRig } from './writer-rig.ts';

export type KillPlan = ReturnType<typeof planKill>;

/** Points come in turn. Everything else depends on the seed. */
export function planKill(seed: number, point: KillPoint = KILL_POINTS[seed % KILL_POINTS.length]!) {
  const random = createRandom(seed);
  // Many small blocks, so that the writer passes every point several times.
  const rows = () => random.integer(10, 40);
  return {
    seed,
    point,
    /** How often the writer passes the point before it is killed there. */
    passages: random.integer(0, 2),
    /** True when the killed writer's last request reaches its store only after the successor has finished. */
    arrivesLate: random.chance(0.5),
    /** True when the connection to ClickHouse breaks with the writer. Otherwise ClickHouse reads the whole insert. */
    breaksOff: random.chance(0.5),
    /** True when the successor is a member of the group already. Otherwise it starts after the kill. */
    isOnStandby: random.chance(0.3),
    messages: random.integer(10, 20) * 20,
    /** Of the writer and its successor. With equal sizes even a writer without intents would store every row once. */
    blockRowsMax: [rows(), rows()] as const,
    momentMs: random.integer(0, 400),
  };
}

/** @returns a function that kills a writer by a plan. The successor is the next to be killed */
export function createKillRun(rig: WriterRig, file = EVENT_WRITER) {
  let writer: GatedProcess | null = null;
  const start = async (rowsMax: number) => rig.startWriter({ BLOCK_ROWS_MAX: String(rowsMax) }, file);
  const whenReady = (what: string, process: GatedProcess) => until(what, () => process.isReady(), WAIT_MAX_MS);
  return async (plan: KillPlan) => {
    const [rowsMax, heirRowsMax] = plan.blockRowsMax;
    const victim = writer ?? (await start(rowsMax));
    await whenReady('the writer is ready', victim);
    let heir = plan.isOnStandby ? await start(heirRowsMax) : null;
    if (heir !== null) await whenReady('the heir is ready', heir);
    const trap = setTrap(victim, plan);
    const publish = () => rig.publishMessages(`test-kill-${plan.seed}`, plan.messages);
    const kill = plan.point === 'at any moment' ? killAtMoment : killAtPoint;
    const reached = await kill(rig, { victim, publish, trap, momentMs: plan.momentMs });
    if (!plan.arrivesLate) trap.release();
    heir ??= await start(heirRowsMax);
    writer = heir;
    await rig.caughtUp();
    trap.release();
    await Promise.all([victim.kafka.settled(), victim.clickhouse.settled()]);
    await victim.close();
    // If the group had accepted a late commit, its position would have moved back.
    await rig.caughtUp();
    return { differences: await rig.differences(), reached };
  };
}

interface Killing {
  readonly victim: GatedProcess;
  readonly trap: Trap;
  readonly momentMs: number;
  publish(): Promise<void>;
}

/** Publishes messages until the kill, so that the writer is in the middle of a block. @returns whether work was left */
async function killAtMoment(rig: WriterRig, { victim, publish, momentMs }: Killing) {
  // Checked twice: at first there may be nothing to do yet, and later a waiting successor may have done everything.
  const leftImmediately = delay(momentMs)
    .then(() => victim.kill())
    .then(() => rig.lag());
  do await publish();
  while (!victim.gone);
  const leftBehind = await rig.lag();
  return (await leftImmediately) + leftBehind > 0;
}

/** @returns false when a waiting successor took over the partition with the point, and finished first */
async function killAtPoint(rig: WriterRig, { victim, publish, trap }: Killing) {
  await publish();
  const caughtUp = rig.caughtUp().then(
    () => false,
    () => false,
  );
  const isReached = await Promise.race([trap.reached.then(() => true), caughtUp]);
  await victim.kill();
  return isReached;
}
