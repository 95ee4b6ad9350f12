import { setTimeout as delay } from 'node:timers/promises';
import { until } from '@playline/testkit';
import { createRandom } from '@playline/testkit/random';
import type { Reached } from './world/report.ts';
import type { InsertWatch } from './writer-clickhouse-gate.ts';
import { assertExact, WAIT_MAX_MS } from './writer-engine.ts';
import type { CommitWatch } from './writer-kafka-gate.ts';
import type { GatedProcess } from './writer-process.ts';
import { EVENT_WRITER, type WriterRig } from './writer-rig.ts';

/** Delays a request until released. */
type Hold = () => Promise<void>;

interface Watches {
  readonly kafka?: CommitWatch;
  readonly clickhouse?: InsertWatch;
}

/** Whether a commit has an intent: its metadata has `e`, the end of a block. */
const isIntent = (metadata: string) => metadata.includes('"e":');

/** Watches only commits after an insert's response. These commits complete a block. */
function afterInsert(create: (isOver: () => boolean) => CommitWatch): Watches {
  let isOver = false;
  const answered = () => {
    isOver = true;
    return false;
  };
  return { clickhouse: { answered }, kafka: create(() => isOver) };
}

const POINTS = {
  'before the intent': (hold: Hold): Watches => ({
    kafka: { arrived: (metadata) => (isIntent(metadata) ? hold() : undefined) },
  }),
  'after the intent, before its response': (hold: Hold): Watches => {
    let hasIntent = false;
    const arrived = (metadata: string) => {
      hasIntent ||= isIntent(metadata);
    };
    return { kafka: { arrived, answered: () => (hasIntent ? hold() : undefined) } };
  },
  'after the intent, before the insert': (hold: Hold): Watches => ({ clickhouse: { arrived: hold } }),
  'after the insert was sent': (hold: Hold, breaksOff: boolean): Watches => ({
    clickhouse: { sent: () => hold().then(() => breaksOff) },
  }),
  'after the insert was stored, before its response': (hold: Hold): Watches => ({
    clickhouse: { answered: () => hold().then(() => false) },
  }),
  'after the insert was acknowledged, before the commit': (hold: Hold): Watches =>
    afterInsert((isOver) => ({ arrived: () => (isOver() ? hold() : undefined) })),
  'after the commit, before its response': (hold: Hold): Watches =>
    afterInsert((isOver) => ({ answered: () => (isOver() ? hold() : undefined) })),
  'at any moment': (): Watches => ({}),
};

export type KillPoint = keyof typeof POINTS;
export const KILL_POINTS = Object.keys(POINTS) as KillPoint[];

type Trap = ReturnType<typeof setTrap>;

/**
 * Stops a writer at a kill point, where its request or the response waits at a gate.
 * @param options.passages how often the writer passes the point before it is stopped
 * @param options.breaksOff whether the connection to ClickHouse breaks on release
 */
export function setTrap(victim: GatedProcess, options: { point: KillPoint; passages: number; breaksOff: boolean }) {
  const reached = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  let passages = 0;
  const hold = async () => {
    if (passages++ < options.passages) return;
    reached.resolve();
    await released.promise;
  };
  const { kafka = {}, clickhouse = {} } = POINTS[options.point](hold, options.breaksOff);
  victim.kafka.watch = kafka;
  victim.clickhouse.watch = clickhouse;
  /** `reached` resolves when the writer has reached the point; never for `at any moment`. */
  return { reached: reached.promise, release: () => released.resolve() };
}

type KillPlan = ReturnType<typeof planKill>;

/** Kill points alternate with the seed. Everything else is random with the seed. */
export function planKill(seed: number, point: KillPoint = KILL_POINTS[seed % KILL_POINTS.length]!) {
  const random = createRandom(seed);
  // Many small blocks, so that the writer passes every point several times.
  const rows = () => random.integer(10, 40);
  return {
    seed,
    point,
    /** How often the writer passes the kill point before it is killed there. */
    passages: random.integer(0, 2),
    /** True when the killed writer's last request reaches its store only after the successor has finished. */
    arrivesLate: random.chance(0.5),
    /** True when the connection to ClickHouse breaks with the writer. Otherwise ClickHouse reads the whole insert. */
    breaksOff: random.chance(0.5),
    /** True when the successor is already a member of the group. Otherwise it starts after the kill. */
    isOnStandby: random.chance(0.3),
    messages: random.integer(10, 20) * 20,
    /** For the writer and its successor. With equal sizes even a writer without intents would store every row once. */
    blockRowsMax: [rows(), rows()] as const,
    momentMs: random.integer(0, 400),
  };
}

/** @returns a function that kills a writer according to a plan. The successor is killed next */
export function createKillRun(rig: WriterRig, file = EVENT_WRITER) {
  let writer: GatedProcess | null = null;
  const start = async (rowsMax: number) => rig.startWriter({ BLOCK_ROWS_MAX: String(rowsMax) }, file);
  const whenReady = (what: string, process: GatedProcess) => until(what, () => process.isReady(), WAIT_MAX_MS);
  return async (plan: KillPlan) => {
    const [rowsMax, successorRowsMax] = plan.blockRowsMax;
    const victim = writer ?? (await start(rowsMax));
    await whenReady('the writer is ready', victim);
    let successor = plan.isOnStandby ? await start(successorRowsMax) : null;
    if (successor !== null) await whenReady('the successor is ready', successor);
    const trap = setTrap(victim, plan);
    const publish = () => rig.publishMessages(`test-kill-${plan.seed}`, plan.messages);
    const kill = plan.point === 'at any moment' ? killAtMoment : killAtPoint;
    const reached = await kill(rig, { victim, publish, trap, momentMs: plan.momentMs });
    if (!plan.arrivesLate) trap.release();
    successor ??= await start(successorRowsMax);
    writer = successor;
    await rig.caughtUp();
    trap.release();
    await Promise.all([victim.kafka.settled(), victim.clickhouse.settled()]);
    await victim.close();
    // If the group had accepted a late commit, its offset would have moved back.
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

/**
 * Publishes messages until the kill, so that the writer is in the middle of a block.
 * @returns whether records were left
 */
async function killAtMoment(rig: WriterRig, { victim, publish, momentMs }: Killing) {
  // Checked twice: at first there may be no records yet, and later a standby successor may have written everything.
  const leftImmediately = delay(momentMs)
    .then(() => victim.kill())
    .then(() => rig.lag());
  do await publish();
  while (!victim.gone);
  const leftBehind = await rig.lag();
  return (await leftImmediately) + leftBehind > 0;
}

/** @returns false when a standby successor took over the partition with the kill point and finished first */
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

const MESSAGES = 200;

/**
 * Freezes a writer for longer than its session. Another writer takes over; then the first writer resumes.
 * @returns 0 for the kill point when the writer was frozen before it reached the point
 */
export async function freezeWriter(rig: WriterRig, seed: number): Promise<Reached> {
  const random = createRandom(seed);
  const point = KILL_POINTS[seed % KILL_POINTS.length]!;
  const rows = () => ({ BLOCK_ROWS_MAX: String(random.integer(10, 40)) });
  const publish = () => rig.publishMessages(`test-freeze-${seed}`, MESSAGES);
  const [frozen, standby] = [await rig.startWriter(rows()), await rig.startWriter(rows())];
  await until('both writers are ready', async () => (await frozen.isReady()) && (await standby.isReady()), WAIT_MAX_MS);
  const trap = setTrap(frozen, { point, passages: random.integer(0, 2), breaksOff: false });
  await publish();
  const isMoment = point === 'at any moment';
  // A writer that does not reach its kill point within five seconds is frozen anyway.
  const late = delay(isMoment ? random.integer(0, 300) : 5_000, isMoment);
  const isAtPoint = await Promise.race([trap.reached.then(() => true), late]);
  frozen.signal('SIGSTOP');
  await publish();
  // Only a takeover can commit everything, because the frozen writer still owns its partitions until then.
  await rig.caughtUp();
  trap.release();
  frozen.signal('SIGCONT');
  await publish();
  await rig.caughtUp();
  // The resumed writer is a member again and must not write its old block now.
  await until('the first writer is ready again', () => frozen.isReady(), WAIT_MAX_MS);
  await publish();
  await frozen.clickhouse.settled();
  await assertExact(rig);
  await Promise.all([frozen.stop(), standby.stop()]);
  await Promise.all([frozen.close(), standby.close()]);
  return { [`frozen ${point}`]: Number(isAtPoint) };
}
