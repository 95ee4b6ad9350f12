import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '@playline/testkit';
import { expect, onTestFinished, test } from 'vitest';
import type { Condition } from './condition.ts';
import {
  type Keeper,
  type KeeperEvents,
  keepRunning,
  NotReadyError,
  type ProcessExit,
  type ProcessSpec,
  restartDelayMs,
  type Silence,
} from './keeper.ts';
import { logFileOf, type StackPaths } from './paths.ts';
import { markOf } from './process-mark.ts';
import { testStackPaths } from './test/paths.ts';

/** Starts a keeper for a Node process that runs `script`. @returns the keeper and its recorded events */
function keep(script: string, changes: Partial<ProcessSpec> = {}, timerSlackMs?: number) {
  const paths = testStackPaths();
  const pids: (number | null)[] = [];
  const exits: ProcessExit[] = [];
  const recoveries: string[] = [];
  const silences: Silence[] = [];
  const conditions: Condition[] = [];
  const spec: ProcessSpec = {
    name: 'tiny',
    program: process.execPath,
    args: ['-e', script],
    env: process.env,
    folder: paths.state,
    logFile: logFileOf(paths, 'tiny'),
    isReady: async () => true,
    readyDeadlineMs: 20_000,
    stopBy: 'SIGTERM',
    stopDeadlineMs: 10_000,
    ...changes,
  };
  const events: KeeperEvents = {
    onPid: (_, pid) => pids.push(pid),
    onExit: (exit) => exits.push(exit),
    onRecovery: (name) => recoveries.push(name),
    onSilence: (silence) => silences.push(silence),
    onCondition: (condition) => conditions.push(condition),
  };
  const keeper: Keeper = keepRunning(spec, events, timerSlackMs);
  onTestFinished(() => keeper.stop());
  return { keeper, pids, exits, recoveries, silences, conditions };
}

const FOREVER = 'setInterval(() => {}, 1000)';

test('the keeper restarts a killed process within half a second', async () => {
  const { keeper, pids, exits, recoveries } = keep(FOREVER);
  await keeper.whenReady();
  expect(recoveries).toEqual([]);
  process.kill(pids[0] ?? 0, 'SIGKILL');
  await until('the process is ready again', () => recoveries.length === 1);
  expect(pids).toHaveLength(3);
  expect(pids[1]).toBeNull();
  expect(pids[2]).not.toBe(pids[0]);
  expect(exits).toMatchObject([{ name: 'tiny', cause: 'signal SIGKILL' }]);
  expect(exits[0]?.restartInMs).toBeLessThan(500);
});

test('the restart delay doubles with each consecutive exit, up to five seconds', () => {
  const delays = Array.from({ length: 12 }, (_, index) => restartDelayMs(index + 1));
  expect(delays[0]).toBeLessThan(500);
  expect(delays).toEqual(delays.toSorted((a, b) => a - b));
  expect(delays.at(-1)).toBe(5_000);
});

test('the keeper reports an exit with the last log lines of that process, without lines of an earlier process', async () => {
  const paths = testStackPaths();
  const startsFile = join(paths.state, 'starts');
  // Each process prints its number, becomes ready, and exits on SIGUSR2.
  const script = `
    const fs = require('node:fs');
    process.on('SIGUSR2', () => process.exit(7));
    const before = fs.existsSync(${JSON.stringify(startsFile)}) ? fs.readFileSync(${JSON.stringify(startsFile)}, 'utf8').length : 0;
    fs.writeSync(1, 'process number ' + (before + 1) + '\\n');
    fs.appendFileSync(${JSON.stringify(startsFile)}, 'x');
    ${FOREVER};`;
  const countStarts = () => (existsSync(startsFile) ? readFileSync(startsFile, 'utf8').length : 0);
  const { keeper, pids, exits } = keep(script, { isReady: async () => countStarts() > 0 });
  await keeper.whenReady();
  for (const round of [1, 2]) {
    await until('the process has started', () => countStarts() === round);
    process.kill(pids.at(-1) ?? 0, 'SIGUSR2');
    await until('the exit is reported', () => exits.length === round);
  }
  expect(exits.map((exit) => exit.cause)).toEqual(['exit code 7', 'exit code 7']);
  expect(exits[1]?.lastLines).toContain('process number 2');
  expect(exits[1]?.lastLines).not.toContain('process number 1');
});

test('the keeper does not restart a paused process and can stop it', async () => {
  let cleanEnds = 0;
  const onCleanEnd = () => void cleanEnds++;
  const { keeper, pids, exits } = keep(FOREVER, { onCleanEnd });
  await keeper.whenReady();
  const pid = pids[0] ?? 0;
  process.kill(pid, 'SIGSTOP');
  const other = keep(FOREVER);
  await other.keeper.whenReady();
  expect(pids).toEqual([pid]);
  expect(exits).toEqual([]);
  await keeper.stop();
  expect(markOf(pid)).toBeNull();
  expect(cleanEnds).toBe(1);
});

test.each([
  ['exits', 'console.error("no such topic"); process.exit(3)', {}, /\(exit code 3\).*no such topic/s, 'no such topic'],
  ['throws', 'throw new Error("wrong folder")', {}, /wrong folder/, 'exit code 1: Error: wrong folder'],
  ['does not exist', '', { program: '/nonexistent/program' }, /tiny .*cannot start/, 'cannot start'],
])('an unready program that %s fails the start and is not restarted', async (...row) => {
  const [, script, changes, message, lastError] = row;
  const { keeper, pids, conditions } = keep(script, { isReady: async () => false, ...changes });
  await expect(keeper.whenReady()).rejects.toThrow(message);
  expect(conditions.at(-1)?.lastError?.what).toContain(lastError);
  expect(pids.at(-1)).toBeNull();
  expect(pids.length).toBeLessThan(3);
});

function createDrainingProgram({ state }: StackPaths) {
  const [started, drained] = [join(state, 'started'), join(state, 'drained')];
  const script = `
    const fs = require('node:fs');
    process.on('SIGTERM', () => { fs.writeFileSync(${JSON.stringify(drained)}, ''); process.exit(0); });
    fs.writeFileSync(${JSON.stringify(started)}, '');
    ${FOREVER};`;
  return { script, started, drained };
}

test('the keeper kills a process only if it does not stop within its deadline', async () => {
  const paths = testStackPaths();
  const { script, started, drained } = createDrainingProgram(paths);
  let cleanEnds = 0;
  const onCleanEnd = () => void cleanEnds++;
  const draining = keep(script, { isReady: async () => existsSync(started), onCleanEnd });
  await draining.keeper.whenReady();
  await draining.keeper.stop();
  expect(existsSync(drained)).toBe(true);
  expect(cleanEnds).toBe(1);

  const ready = join(paths.state, 'ready');
  const stubborn = keep(
    `process.on('SIGTERM', () => {}); require('node:fs').writeFileSync(${JSON.stringify(ready)}, ''); ${FOREVER}`,
    { isReady: async () => existsSync(ready), stopDeadlineMs: 100, onCleanEnd },
  );
  await stubborn.keeper.whenReady();
  await stubborn.keeper.stop();
  expect(markOf(stubborn.pids[0] ?? 0)).toBeNull();
  expect(cleanEnds).toBe(1);
});

test('an immediate stop kills a process unless the process has a clean-exit handler', async () => {
  const killed = createDrainingProgram(testStackPaths());
  const ended = createDrainingProgram(testStackPaths());
  let cleanEnds = 0;
  const keepers = [
    keep(killed.script, { isReady: async () => existsSync(killed.started) }),
    keep(ended.script, { isReady: async () => existsSync(ended.started), onCleanEnd: () => void cleanEnds++ }),
  ];
  for (const { keeper } of keepers) {
    await keeper.whenReady();
    await keeper.stop({ immediately: true });
  }
  expect(keepers.map(({ pids }) => markOf(pids[0] ?? 0))).toEqual([null, null]);
  expect([existsSync(killed.drained), existsSync(ended.drained), cleanEnds]).toEqual([false, true, 1]);
});

test('a stop during the restart delay prevents the restart', async () => {
  const { keeper, pids, exits } = keep(FOREVER);
  await keeper.whenReady();
  process.kill(pids[0] ?? 0, 'SIGKILL');
  await until('the exit is reported', () => exits.length === 1);
  await keeper.stop();
  const later = keep(FOREVER);
  await later.keeper.whenReady();
  expect(pids).toHaveLength(2);
});

test('the keeper renames an oversized log when it starts the process', async () => {
  const paths = testStackPaths();
  const logFile = join(paths.state, 'large.log');
  writeFileSync(logFile, Buffer.alloc(11 * 1024 * 1024, 'x'));
  const { keeper } = keep(FOREVER, { logFile });
  await keeper.whenReady();
  expect(existsSync(`${logFile}.1`)).toBe(true);
});

test('the keeper reports an unready process once, with the reason, and then reports its recovery', async () => {
  let reason: string | null = null;
  const isReady = async () => {
    if (reason !== null) throw new Error(reason);
    return true;
  };
  const { keeper, pids, exits, recoveries, silences, conditions } = keep(FOREVER, {
    isReady,
    watch: { silenceMaxMs: 50, steadyPollMs: 10 },
  });
  await keeper.whenReady();
  reason = 'not ready: broker';
  await until('the process is reported', () => silences.length === 1);
  expect(silences).toEqual([{ name: 'tiny', pid: pids[0], reason }]);
  expect(conditions.at(-1)).toMatchObject({ state: 'not serving', reason, lastError: { what: reason } });
  expect(conditions.at(-1)).toMatchObject({ isSilent: true });
  reason = 'not ready: broker, schemas';
  await until('the new reason is recorded', () => conditions.at(-1)?.reason === reason);
  reason = null;
  await until('the process is ready again', () => recoveries.length === 1);
  expect(silences).toHaveLength(1);
  expect(exits).toEqual([]);
  expect(pids).toHaveLength(1);
  expect(conditions.at(-1)).toMatchObject({ state: 'serving', reason: null, restarts: 0, isSilent: false });
});

test('a process that misses its readiness deadline fails the start and is still supervised', async () => {
  let isReady = false;
  const { keeper, pids, recoveries, conditions } = keep(FOREVER, { isReady: async () => isReady, readyDeadlineMs: 50 });
  const failure = keeper.whenReady();
  await expect(failure).rejects.toThrow(NotReadyError);
  await expect(failure).rejects.toThrow('tiny was not ready within 0.05 s');
  expect(conditions.at(-1)?.state).toBe('not serving');
  isReady = true;
  await until('the process is ready', () => recoveries.length === 1);
  expect(pids).toHaveLength(1);
  process.kill(pids[0] ?? 0, 'SIGKILL');
  await until('the process is ready again', () => recoveries.length === 2);
  expect(conditions.at(-1)).toMatchObject({
    state: 'serving',
    restarts: 1,
    lastError: { what: expect.stringContaining('signal SIGKILL') },
  });
});

test('a restart recomputes the arguments and creates a missing folder', async () => {
  const paths = testStackPaths();
  const folder = join(paths.state, 'data');
  const [logFile, starts] = [logFileOf(paths, 'starts'), [1, 2]];
  const args = () => ['-e', `console.log('start ${starts.shift()}'); ${FOREVER}`];
  const { keeper, pids } = keep('', { logFile, args, folder });
  await keeper.whenReady();
  await until('the first start', () => readFileSync(logFile, 'utf8').includes('start 1'));
  rmSync(folder, { recursive: true });
  process.kill(pids[0] ?? 0, 'SIGKILL');
  await until('the second start', () => readFileSync(logFile, 'utf8').includes('start 2'));
});

const SLACK = '/proc/self/timerslack_ns';

test("a process and its children inherit the configured timer slack, and the keeper's slack is unchanged", async () => {
  const before = readFileSync(SLACK, 'utf8');
  const script = `console.log(require('node:child_process').execFileSync('cat', ['${SLACK}'], { encoding: 'utf8' })); ${FOREVER}`;
  const paths = testStackPaths();
  const slackOf = async (timerSlackMs?: number) => {
    const logFile = logFileOf(paths, `slack-${timerSlackMs}`);
    keep(script, { logFile }, timerSlackMs);
    await until('the slack is printed', () => existsSync(logFile) && readFileSync(logFile, 'utf8').includes('\n'));
    return Number(readFileSync(logFile, 'utf8'));
  };
  expect(await slackOf(40)).toBe(40_000_000);
  expect(await slackOf()).toBe(Number(before));
  expect(readFileSync(SLACK, 'utf8')).toBe(before);
});
