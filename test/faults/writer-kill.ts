import { setTimeout as delay } from 'node:timers/promises';
import { until } from '@playline/testkit';
import { createRandom } from '@playline/testkit/random';
import type { Effects } from './world/report.ts';
import type { InsertWatch } from './writer-clickhouse-proxy.ts';
import { assertExact, WAIT_MAX_MS } from './writer-engine.ts';
import type { CommitWatch } from './writer-kafka-proxy.ts';
import type { ProxiedProcess } from './writer-process.ts';
import { EVENT_WRITER, type WriterRig } from './writer-rig.ts';

type Block = () => Promise<void>;

interface Watches {
  readonly kafka?: CommitWatch;
  readonly clickhouse?: InsertWatch;
}

/** True if the commit contains an intent: the metadata has `e`, the end of a block. */
const isIntent = (metadata: string) => metadata.includes('"e":');

/** Watches only commits that follow an insert's response and therefore complete a block. */
function afterInsert(create: (isStored: () => boolean) => CommitWatch): Watches {
  let isStored = false;
  const onResponse = () => {
    isStored = true;
    return false;
  };
  return { clickhouse: { onResponse }, kafka: create(() => isStored) };
}

const POINTS = {
  'before the intent': (block: Block): Watches => ({
    kafka: { onRequest: (metadata) => (isIntent(metadata) ? block() : undefined) },
  }),
  'after the intent, before its response': (block: Block): Watches => {
    let hasIntent = false;
    const onRequest = (metadata: string) => {
      hasIntent ||= isIntent(metadata);
    };
    return { kafka: { onRequest, onResponse: () => (hasIntent ? block() : undefined) } };
  },
  'after the intent, before the insert': (block: Block): Watches => ({ clickhouse: { onRequest: block } }),
  'after the insert was sent': (block: Block, breaksConnection: boolean): Watches => ({
    clickhouse: { onSent: () => block().then(() => breaksConnection) },
  }),
  'after the insert was stored, before its response': (block: Block): Watches => ({
    clickhouse: { onResponse: () => block().then(() => false) },
  }),
  'after the insert was acknowledged, before the commit': (block: Block): Watches =>
    afterInsert((isStored) => ({ onRequest: () => (isStored() ? block() : undefined) })),
  'after the commit, before its response': (block: Block): Watches =>
    afterInsert((isStored) => ({ onResponse: () => (isStored() ? block() : undefined) })),
  'at any time': (): Watches => ({}),
};

export type KillPoint = keyof typeof POINTS;
export const KILL_POINTS = Object.keys(POINTS) as KillPoint[];

type BreakpointOptions = Readonly<{ point: KillPoint; skips: number; breaksConnection: boolean }>;

/**
 * Blocks a writer at a kill point, where a proxy delays the writer's request or the response.
 * @param options.skips how often the writer passes the point before it is blocked
 * @param options.breaksConnection breaks the connection to ClickHouse on release
 */
export function setBreakpoint(victim: ProxiedProcess, options: BreakpointOptions) {
  const reached = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  let arrivals = 0;
  const block = async () => {
    if (arrivals++ < options.skips) return;
    reached.resolve();
    await released.promise;
  };
  const { kafka = {}, clickhouse = {} } = POINTS[options.point](block, options.breaksConnection);
  victim.kafka.watch = kafka;
  victim.clickhouse.watch = clickhouse;
  /** `reached` resolves when the writer is blocked at the point; never for `at any time`. */
  return { reached: reached.promise, release: () => released.resolve() };
}

type KillPlan = ReturnType<typeof planKill>;

/** The seed selects the kill point in rotation and all other values at random. */
export function planKill(seed: number, point: KillPoint = KILL_POINTS[seed % KILL_POINTS.length]!) {
  const random = createRandom(seed);
  // Small blocks, so that the writer passes every point several times.
  const rows = () => random.integer(10, 40);
  return {
    seed,
    point,
    /** How often the writer passes the kill point before it is killed there. */
    skips: random.integer(0, 2),
    /** The killed writer's last request reaches the store only after the successor has finished. */
    arrivesLate: random.chance(0.5),
    /** Breaks the connection to ClickHouse together with the writer. Otherwise ClickHouse reads the whole insert. */
    breaksConnection: random.chance(0.5),
    /** The successor joins the group before the kill. Otherwise it starts after the kill. */
    isOnStandby: random.chance(0.3),
    messages: random.integer(10, 20) * 20,
    /** For the writer and the successor. With equal sizes, the token alone would prevent duplicate rows. */
    blockRowsMax: [rows(), rows()] as const,
    delayMs: random.integer(0, 400),
  };
}

/** @returns a function that kills a writer according to a plan; the successor is the next victim */
export function createKillRun(rig: WriterRig, file = EVENT_WRITER) {
  let writer: ProxiedProcess | null = null;
  const start = async (rowsMax: number) => rig.startWriter({ BLOCK_ROWS_MAX: String(rowsMax) }, file);
  const whenReady = (what: string, process: ProxiedProcess) => until(what, () => process.isReady(), WAIT_MAX_MS);
  return async (plan: KillPlan) => {
    const [rowsMax, successorRowsMax] = plan.blockRowsMax;
    const victim = writer ?? (await start(rowsMax));
    await whenReady('the writer is ready', victim);
    let successor = plan.isOnStandby ? await start(successorRowsMax) : null;
    if (successor !== null) await whenReady('the successor is ready', successor);
    const breakpoint = setBreakpoint(victim, plan);
    const publish = () => rig.publishMessages(`test-kill-${plan.seed}`, plan.messages);
    const kill = plan.point === 'at any time' ? killAfterDelay : killAtPoint;
    const reached = await kill(rig, { victim, publish, breakpoint, delayMs: plan.delayMs });
    if (!plan.arrivesLate) breakpoint.release();
    successor ??= await start(successorRowsMax);
    writer = successor;
    await rig.caughtUp();
    breakpoint.release();
    await Promise.all([victim.kafka.settled(), victim.clickhouse.settled()]);
    await victim.close();
    // An accepted late commit would have moved the committed offset back.
    await rig.caughtUp();
    return { differences: await rig.differences(), reached };
  };
}

interface Killing {
  readonly victim: ProxiedProcess;
  readonly breakpoint: ReturnType<typeof setBreakpoint>;
  readonly delayMs: number;
  publish(): Promise<void>;
}

/**
 * Publishes messages until the kill, so that the writer is killed within a block.
 * @returns true if uncommitted records remained
 */
async function killAfterDelay(rig: WriterRig, { victim, publish, delayMs }: Killing) {
  // Reads the lag twice: at the kill there may be no records yet, and later a standby successor may have written all.
  const lagAtKill = delay(delayMs)
    .then(() => victim.kill())
    .then(() => rig.lag());
  do await publish();
  while (!victim.hasExited);
  const lagAfterwards = await rig.lag();
  return (await lagAtKill) + lagAfterwards > 0;
}

/** @returns false if a standby successor took over and finished before the writer reached the kill point */
async function killAtPoint(rig: WriterRig, { victim, publish, breakpoint }: Killing) {
  await publish();
  const caughtUp = rig.caughtUp().then(
    () => false,
    () => false,
  );
  const isReached = await Promise.race([breakpoint.reached.then(() => true), caughtUp]);
  await victim.kill();
  return isReached;
}

const MESSAGES = 200;

/**
 * Freezes a writer past its session timeout. A standby writer takes over; then the frozen writer resumes.
 * @returns 0 for the kill point if the writer did not reach it
 */
export async function freezeWriter(rig: WriterRig, seed: number): Promise<Effects> {
  const random = createRandom(seed);
  const point = KILL_POINTS[seed % KILL_POINTS.length]!;
  const rows = () => ({ BLOCK_ROWS_MAX: String(random.integer(10, 40)) });
  const publish = () => rig.publishMessages(`test-freeze-${seed}`, MESSAGES);
  const [frozen, standby] = [await rig.startWriter(rows()), await rig.startWriter(rows())];
  await until('both writers are ready', async () => (await frozen.isReady()) && (await standby.isReady()), WAIT_MAX_MS);
  const breakpoint = setBreakpoint(frozen, { point, skips: random.integer(0, 2), breaksConnection: false });
  await publish();
  const isAtAnyTime = point === 'at any time';
  // A writer that does not reach the kill point is frozen after five seconds.
  const late = delay(isAtAnyTime ? random.integer(0, 300) : 5_000, isAtAnyTime);
  const isAtPoint = await Promise.race([breakpoint.reached.then(() => true), late]);
  frozen.signal('SIGSTOP');
  await publish();
  // Only a takeover can commit everything, because the frozen writer owns some partitions.
  await rig.caughtUp();
  breakpoint.release();
  frozen.signal('SIGCONT');
  await publish();
  await rig.caughtUp();
  // The resumed writer rejoins the group and must not write its old block.
  await until('the resumed writer is ready again', () => frozen.isReady(), WAIT_MAX_MS);
  await publish();
  await frozen.clickhouse.settled();
  await assertExact(rig);
  await Promise.all([frozen.stop(), standby.stop()]);
  await Promise.all([frozen.close(), standby.close()]);
  return { [`frozen ${point}`]: Number(isAtPoint) };
}
