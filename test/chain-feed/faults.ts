import { setTimeout as delay } from 'node:timers/promises';
import { until } from '@playline/testkit';
import { createDeck, type Random } from '@playline/testkit/random';
import { addEffects, type Effects, toSeconds, toText } from '../faults/world/report.ts';
import { KILL_POINTS, type KillPoint, setBreakpoint } from '../faults/writer-kill.ts';
import type { ProxiedProcess } from '../faults/writer-process.ts';
import { type FeedRig, WAIT_MAX_MS } from './feed-rig.ts';
import type { PageChecks } from './page-checks.ts';
import type { RunningProcesses } from './processes.ts';

/** A writer without an activity partition never reaches a kill point, so the wait is limited. */
const REACH_MAX_MS = 3_000;
const WALKS_WITHOUT_WATERMARKS = 3;

export interface FaultContext {
  readonly rig: FeedRig;
  readonly processes: RunningProcesses;
  readonly pageChecks: PageChecks;
  readonly random: Random;
  readonly drawPoint: () => KillPoint;
}

export type Fault = (context: FaultContext) => Promise<Effects>;

/** Kills a writer during a block. The writer's last request arrives before the successor starts or after all others. */
const killWriter: Fault = async ({ rig, processes, random, drawPoint }) => {
  const point = drawPoint();
  const victim = random.pick(processes.writers);
  const barrier = setBreakpoint(victim, { point, skips: random.integer(0, 2), breaksConnection: random.chance(0.5) });
  const isReached = await isReachedWithinLimit(barrier.reached, point, random);
  await victim.kill();
  processes.remove(victim);
  const isRequestLate = random.chance(0.5);
  if (!isRequestLate) barrier.release();
  await processes.addWriter();
  await rig.untilCaughtUp();
  barrier.release();
  await closeSettled(victim);
  return { [`killed ${point}`]: Number(isReached) };
};

const freezeWriter: Fault = async ({ rig, processes, random, drawPoint }) => {
  const point = drawPoint();
  const victim = random.pick(processes.writers);
  const barrier = setBreakpoint(victim, { point, skips: 0, breaksConnection: false });
  const isReached = await isReachedWithinLimit(barrier.reached, point, random);
  victim.signal('SIGSTOP');
  // Only a takeover can commit everything, because the frozen writer still owns its partitions until then.
  await rig.untilCaughtUp();
  barrier.release();
  victim.signal('SIGCONT');
  await until('the writer is ready again', () => victim.isReady(), WAIT_MAX_MS);
  await rig.untilCaughtUp();
  return { [`frozen ${point}`]: Number(isReached) };
};

async function isReachedWithinLimit(reached: Promise<void>, point: KillPoint, random: Random): Promise<boolean> {
  if (point === 'at any time') return delay(random.integer(0, 400), true);
  return Promise.race([reached.then(() => true), delay(REACH_MAX_MS, false)]);
}

async function closeSettled(writer: ProxiedProcess): Promise<void> {
  await Promise.all([writer.kafka.settled(), writer.clickhouse.settled()]);
  await writer.close();
}

const stopWriter: Fault = async ({ rig, processes, random }) => {
  const victim = random.pick(processes.writers);
  await processes.addWriter();
  processes.remove(victim);
  await victim.stop();
  await closeSettled(victim);
  await rig.untilCaughtUp();
  return { 'stopped gracefully': 1 };
};

const loseWatermarks: Fault = async ({ rig }) => {
  await rig.watermarks.lose();
  await rig.untilCaughtUp();
  return { 'watermarks lost': 1 };
};

const killApi: Fault = async ({ processes, random }) => {
  const victim = random.pick(processes.apis);
  processes.remove(victim);
  await victim.process.kill();
  await processes.addApi();
  await victim.process.close();
  return { 'API killed': 1 };
};

const restartAll: Fault = async ({ rig, processes, pageChecks }) => {
  const [writers, apis] = [processes.writers, processes.apis];
  for (const writer of writers) processes.remove(writer);
  await Promise.all(writers.map((writer) => writer.kill()));
  await rig.watermarks.lose();
  for (const api of apis) processes.remove(api);
  await Promise.all(apis.map(({ process }) => process.kill()));
  const newApis = await Promise.all([processes.addUnreadyApi(), processes.addUnreadyApi()]);
  const walksMin = pageChecks.backwardWalks + WALKS_WITHOUT_WATERMARKS;
  await until('readers have walked back', () => pageChecks.backwardWalks >= walksMin, WAIT_MAX_MS);
  await Promise.all([processes.addWriter(), processes.addWriter()]);
  const areReady = async () => (await Promise.all(newApis.map(({ process }) => process.isReady()))).every(Boolean);
  await until('the APIs have watermarks again', areReady, WAIT_MAX_MS);
  await Promise.all([...writers.map(closeSettled), ...apis.map(({ process }) => process.close())]);
  await rig.untilCaughtUp();
  return { 'all restarted without watermarks': 1 };
};

const stopClickHouse: Fault = async ({ rig, processes }) => {
  const all = [...processes.writers, ...processes.apis.map(({ process }) => process)];
  const areAllReady = async (expected: boolean) =>
    (await Promise.all(all.map((each) => each.isReady()))).every((isReady) => isReady === expected);
  for (const { clickhouse } of all) clickhouse.down = true;
  await until('no process is ready', () => areAllReady(false), WAIT_MAX_MS);
  for (const { clickhouse } of all) clickhouse.down = false;
  await until('all processes are ready', () => areAllReady(true), WAIT_MAX_MS);
  await rig.untilCaughtUp();
  return { 'ClickHouse unavailable': 1 };
};

const FAULTS: readonly Fault[] = [
  ...[killWriter, freezeWriter, stopWriter],
  ...[loseWatermarks, killApi, restartAll, stopClickHouse],
];
export const FAULT_KINDS: number = FAULTS.length;

/** Injects faults one after another, and waits for the writers to catch up after each. @param onLine logs each fault */
export async function injectFaults(
  context: Omit<FaultContext, 'drawPoint'>,
  { count, onLine }: { count: number; onLine: (line: string) => void },
): Promise<Effects> {
  const draw = createDeck(context.random, FAULTS);
  const drawPoint = createDeck(context.random, KILL_POINTS);
  let effects: Effects = {};
  // Some faults wait for backward readers, which start from a cursor that another reader has stored.
  await until('a reader has walked back', () => context.pageChecks.backwardWalks > 0, WAIT_MAX_MS);
  for (let done = 1; done <= count; done++) {
    const startMs = performance.now();
    const result = await draw()({ ...context, drawPoint });
    onLine(`${done} of ${count}: ${toText(result)}, recovered after ${toSeconds(performance.now() - startMs)} s`);
    effects = addEffects(effects, result);
  }
  return effects;
}
