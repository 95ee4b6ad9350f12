import { setTimeout as delay } from 'node:timers/promises';
import { until } from '@playline/testkit';
import { createRandom } from '@playline/testkit/random';
import type { Reached } from './world/report.ts';
import type { InsertWatch } from './writer-clickhouse-gate.ts';
import { assertExact, WAIT_MAX_MS } from './writer-engine.ts';
import type { CommitWatch } from './writer-kafka-gate.ts';
import type { GatedProcess } from './writer-process.ts';
import { EVENT_WRITER, type WriterRig } from './writer-rig.ts';

type Hold = () => Promise<void>;

interface Watches {
  readonly kafka?: CommitWatch;
  readonly clickhouse?: InsertWatch;
}

/** True if a commit contains an intent: its metadata has `e`, the end of a block. */
const isIntent = (metadata: string) => metadata.includes('"e":');

/** Watches only commits that follow an insert's response and therefore complete a block. */
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
 * Blocks a writer at a kill point: a gate delays its request or the response.
 * @param options.passages how often the writer passes the point before it is blocked
 * @param options.breaksOff breaks the connection to ClickHouse on release
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
  /** `reached` resolves when the writer is blocked at the point; never for `at any moment`. */
  return { reached: reached.promise, release: () => released.resolve() };
}

type KillPlan = ReturnType<typeof planKill>;

/** The seed selects the kill point in rotation and everything else at random. */
export function planKill(seed: number, point: KillPoint = KILL_POINTS[seed % KILL_POINTS.length]!) {
  const random = createRandom(seed);
  // Small blocks, so that the writer passes every point several times.
  const rows = () => random.integer(10, 40);
  return {
    seed,
    point,
    /** How often the writer passes the kill point before it is killed there. */
    passages: random.integer(0, 2),
    /** The killed writer's last request reaches its store only after the successor has finished. */
    arrivesLate: random.chance(0.5),
    /** The connection to ClickHouse breaks with the writer. Otherwise ClickHouse reads the whole insert. */
    breaksOff: random.chance(0.5),
    /** The successor joins the group before the kill. Otherwise it starts after the kill. */
    isOnStandby: random.chance(0.3),
    messages: random.integer(10, 20) * 20,
    /** For the writer and its successor. With equal sizes, the token alone would prevent duplicate rows. */
    blockRowsMax: [rows(), rows()] as const,
    momentMs: random.integer(0, 400),
  };
}

/** @returns a function that kills a writer according to a plan; the successor is the next victim */
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
    // An accepted late commit would have moved the committed offset back.
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
 * Publishes messages until the kill, so that the writer is killed within a block.
 * @returns true if uncommitted records remained
 */
async function killAtMoment(rig: WriterRig, { victim, publish, momentMs }: Killing) {
  // Reads the lag twice: at first there may be no records, and later a standby successor may have written everything.
  const lagAtKill = delay(momentMs)
    .then(() => victim.kill())
    .then(() => rig.lag());
  do await publish();
  while (!victim.gone);
  const lagAfterwards = await rig.lag();
  return (await lagAtKill) + lagAfterwards > 0;
}

/** @returns false if a standby successor took over and finished before the kill point was reached */
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
 * Freezes a writer past its session timeout. Another writer takes over; then the first writer resumes.
 * @returns 0 for the kill point if the writer did not reach it
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
  // Without reaching the kill point, the writer is frozen after five seconds.
  const late = delay(isMoment ? random.integer(0, 300) : 5_000, isMoment);
  const isAtPoint = await Promise.race([trap.reached.then(() => true), late]);
  frozen.signal('SIGSTOP');
  await publish();
  // Only a takeover can commit everything, because the frozen writer owns some partitions.
  await rig.caughtUp();
  trap.release();
  frozen.signal('SIGCONT');
  await publish();
  await rig.caughtUp();
  // The resumed writer has rejoined the group and must not write its old block.
  await until('the first writer is ready again', () => frozen.isReady(), WAIT_MAX_MS);
  await publish();
  await frozen.clickhouse.settled();
  await assertExact(rig);
  await Promise.all([frozen.stop(), standby.stop()]);
  await Promise.all([frozen.close(), standby.close()]);
  return { [`frozen ${point}`]: Number(isAtPoint) };
}
