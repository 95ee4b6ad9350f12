import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '@playline/testkit';
import { expect, onTestFinished, test } from 'vitest';
import type { Condition } from './condition.ts';
import {
  type Death,
  type Keeper,
  type KeeperEvents,
  keepRunning,
  NotReadyError,
  type ProcessSpec,
  restartDelayMs,
  type Silence,
} from './keeper.ts';
import { logFileOf, type StackPaths } from './paths.ts';
import { markOf } from './process-mark.ts';
import { testStackPaths } from './test/paths.ts';

/** A kept Node process that runs `script`, and the events of its keeper. */
function keep(script: string, changes: Partial<ProcessSpec> = {}, timerSlackMs?: number) {
  const places = testStackPaths();
  const pids: (number | null)[] = [];
  const deaths: Death[] = [];
  const recoveries: string[] = [];
  const silences: Silence[] = [];
  const conditions: Condition[] = [];
  const spec: ProcessSpec = {
    name: 'tiny',
    program: process.execPath,
    args: ['-e', script],
    env: process.env,
    folder: places.state,
    logFile: logFileOf(places, 'tiny'),
    isReady: async () => true,
    readyDeadlineMs: 20_000,
    stopBy: 'SIGTERM',
    stopDeadlineMs: 10_000,
    ...changes,
  };
  const events: KeeperEvents = {
    onPid: (_, pid) => pids.push(pid),
    onDeath: (death) => deaths.push(death),
    onRecovery: (name) => recoveries.push(name),
    onSilence: (silence) => silences.push(silence),
    onCondition: (condition) => conditions.push(condition),
  };
  const keeper: Keeper = keepRunning(spec, events, timerSlackMs);
  onTestFinished(() => keeper.stop());
  return { keeper, pids, deaths, recoveries, silences, conditions };
}

const FOREVER = 'setInterval(() => {}, 1000)';

test('a process that is killed is started again, first after less than half a second', async () => {
  const { keeper, pids, deaths, recoveries } = keep(FOREVER);
  await keeper.whenReady();
  expect(recoveries).toEqual([]);
  process.kill(pids[0] ?? 0, 'SIGKILL');
  await until('it is ready again', () => recoveries.length === 1);
  expect(pids).toHaveLength(3);
  expect(pids[1]).toBeNull();
  expect(pids[2]).not.toBe(pids[0]);
  expect(deaths).toMatchObject([{ name: 'tiny', how: 'signal SIGKILL' }]);
  expect(deaths[0]?.restartInMs).toBeLessThan(500);
});

test('the wait before a restart doubles with each death in a row, up to five seconds', () => {
  const delays = Array.from({ length: 12 }, (_, index) => restartDelayMs(index + 1));
  expect(delays[0]).toBeLessThan(500);
  expect(delays).toEqual(delays.toSorted((a, b) => a - b));
  expect(delays.at(-1)).toBe(5_000);
});

test('a death is reported with the last lines of the process that died, not of an earlier one', async () => {
  const places = testStackPaths();
  const startsFile = join(places.state, 'starts');
  // Each process prints a number, becomes ready, and ends on request.
  const script = `
    const fs = require('node:fs');
    process.on('SIGUSR2', () => process.exit(7));
    const before = fs.existsSync(${JSON.stringify(startsFile)}) ? fs.readFileSync(${JSON.stringify(startsFile)}, 'utf8').length : 0;
    fs.writeSync(1, 'process number ' + (before + 1) + '\\n');
    fs.appendFileSync(${JSON.stringify(startsFile)}, 'x');
    ${FOREVER};`;
  const startsSeen = () => (existsSync(startsFile) ? readFileSync(startsFile, 'utf8').length : 0);
  const { keeper, pids, deaths } = keep(script, { isReady: async () => startsSeen() > 0 });
  await keeper.whenReady();
  for (const round of [1, 2]) {
    await until('it has spoken', () => startsSeen() === round);
    process.kill(pids.at(-1) ?? 0, 'SIGUSR2');
    await until('its death', () => deaths.length === round);
  }
  expect(deaths.map((death) => death.cause)).toEqual(['exit code 7', 'exit code 7']);
  expect(deaths[1]?.lastLines).toContain('process number 2');
  expect(deaths[1]?.lastLines).not.toContain('process number 1');
});

test('a process that is only paused is left alone, and can still be stopped', async () => {
  let cleanEnds = 0;
  const onCleanEnd = () => {
    cleanEnds += 1;
  };
  const { keeper, pids, deaths } = keep(FOREVER, { onCleanEnd });
  await keeper.whenReady();
  const pid = pids[0] ?? 0;
  process.kill(pid, 'SIGSTOP');
  const other = keep(FOREVER);
  await other.keeper.whenReady();
  expect(pids).toEqual([pid]);
  expect(deaths).toEqual([]);
  await keeper.stop();
  expect(markOf(pid)).toBeNull();
  expect(cleanEnds).toBe(1);
});

test('a process that ends before it was ever ready fails the start with its last lines and is not started again', async () => {
  const { keeper, pids } = keep('console.error("no such topic"); process.exit(3)', { isReady: async () => false });
  await expect(keeper.whenReady()).rejects.toThrow(/tiny ended before it was ready \(exit code 3\).*no such topic/s);
  expect(pids).toEqual([expect.any(Number), null]);
});

test('the last lines of a process are reported without stack frames', async () => {
  const { keeper, conditions } = keep('throw new Error("the folder is not mine")', { isReady: async () => false });
  await expect(keeper.whenReady()).rejects.toThrow();
  expect(conditions.at(-1)?.lastError?.what).toBe('exit code 1: Error: the folder is not mine');
});

test('a program that does not exist fails the start by name', async () => {
  const { keeper } = keep('', { program: '/nonexistent/program', isReady: async () => false });
  await expect(keeper.whenReady()).rejects.toThrow(/tiny .*could not be started/);
});

test('a process that does not answer in time fails the start and stays until it is stopped', async () => {
  const { keeper, pids } = keep(FOREVER, { isReady: async () => false, readyDeadlineMs: 100 });
  await expect(keeper.whenReady()).rejects.toThrow('tiny was not ready within 0.1 s');
  expect(markOf(pids[0] ?? 0)).not.toBeNull();
  await keeper.stop();
  expect(markOf(pids[0] ?? 0)).toBeNull();
});

/** A program that writes a file when it has started, and one when it is asked to end. */
function drainingIn({ state }: StackPaths) {
  const [started, drained] = [join(state, 'started'), join(state, 'drained')];
  const script = `
    const fs = require('node:fs');
    process.on('SIGTERM', () => { fs.writeFileSync(${JSON.stringify(drained)}, ''); process.exit(0); });
    fs.writeFileSync(${JSON.stringify(started)}, '');
    ${FOREVER};`;
  return { script, started, drained };
}

test('stop lets a process drain, and kills it only after its deadline', async () => {
  const places = testStackPaths();
  const { script, started, drained } = drainingIn(places);
  let cleanEnds = 0;
  const onCleanEnd = () => {
    cleanEnds += 1;
  };
  const draining = keep(script, { isReady: async () => existsSync(started), onCleanEnd });
  await draining.keeper.whenReady();
  await draining.keeper.stop();
  expect(existsSync(drained)).toBe(true);
  expect(cleanEnds).toBe(1);

  const deaf = join(places.state, 'deaf');
  const stubborn = keep(
    `process.on('SIGTERM', () => {}); require('node:fs').writeFileSync(${JSON.stringify(deaf)}, ''); ${FOREVER}`,
    { isReady: async () => existsSync(deaf), stopDeadlineMs: 100, onCleanEnd },
  );
  await stubborn.keeper.whenReady();
  await stubborn.keeper.stop();
  expect(markOf(stubborn.pids[0] ?? 0)).toBeNull();
  expect(cleanEnds).toBe(1);
});

test('a stop at once kills a process, unless something is to be done at its clean end', async () => {
  const killed = drainingIn(testStackPaths());
  const ended = drainingIn(testStackPaths());
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

test('a stop during the wait before a restart prevents the restart', async () => {
  const { keeper, pids, deaths } = keep(FOREVER);
  await keeper.whenReady();
  process.kill(pids[0] ?? 0, 'SIGKILL');
  await until('its death', () => deaths.length === 1);
  await keeper.stop();
  const later = keep(FOREVER);
  await later.keeper.whenReady();
  expect(pids).toHaveLength(2);
});

test('a log that has grown too large is moved aside when its process starts', async () => {
  const places = testStackPaths();
  const logFile = join(places.state, 'large.log');
  writeFileSync(logFile, Buffer.alloc(11 * 1024 * 1024, 'x'));
  const { keeper } = keep(FOREVER, { logFile });
  await keeper.whenReady();
  expect(existsSync(`${logFile}.1`)).toBe(true);
});

test('a process that runs without serving is reported once with the reason, left alone, and reported again once it serves', async () => {
  let reason: string | null = null;
  const isReady = async () => {
    if (reason !== null) throw new Error(reason);
    return true;
  };
  const { keeper, pids, deaths, recoveries, silences, conditions } = keep(FOREVER, {
    isReady,
    watch: { silenceMaxMs: 50, calmPollMs: 10 },
  });
  await keeper.whenReady();
  reason = 'not ready: broker';
  await until('it is told of', () => silences.length === 1);
  expect(silences).toEqual([{ name: 'tiny', pid: pids[0], reason }]);
  expect(conditions.at(-1)).toMatchObject({ state: 'not serving', reason, lastError: { what: reason } });
  expect(conditions.at(-1)).toMatchObject({ isSilent: true });
  reason = 'not ready: broker, schemas';
  await until('the new reason is known', () => conditions.at(-1)?.reason === reason);
  reason = null;
  await until('it is ready again', () => recoveries.length === 1);
  expect(silences).toHaveLength(1);
  expect(deaths).toEqual([]);
  expect(pids).toHaveLength(1);
  expect(conditions.at(-1)).toMatchObject({ state: 'serving', reason: null, restarts: 0, isSilent: false });
});

test('a process that was not ready in time is still watched: it is reported when it serves, and restarted when it ends', async () => {
  let isReady = false;
  const { keeper, pids, recoveries, conditions } = keep(FOREVER, { isReady: async () => isReady, readyDeadlineMs: 50 });
  await expect(keeper.whenReady()).rejects.toThrow(NotReadyError);
  expect(conditions.at(-1)?.state).toBe('not serving');
  isReady = true;
  await until('it is ready', () => recoveries.length === 1);
  process.kill(pids[0] ?? 0, 'SIGKILL');
  await until('it is ready again', () => recoveries.length === 2);
  expect(conditions.at(-1)).toMatchObject({
    state: 'serving',
    restarts: 1,
    lastError: { what: expect.stringContaining('signal SIGKILL') },
  });
});

test('a process can be restarted although its folder was emptied meanwhile', async () => {
  const folder = join(testStackPaths().state, 'data');
  const { keeper, pids, recoveries } = keep(FOREVER, { folder });
  await keeper.whenReady();
  rmSync(folder, { recursive: true });
  process.kill(pids[0] ?? 0, 'SIGKILL');
  await until('it is ready again', () => recoveries.length === 1);
});

test('the arguments of a process are asked anew for each start', async () => {
  const places = testStackPaths();
  const [logFile, starts] = [logFileOf(places, 'asked'), [1, 2]];
  const args = () => ['-e', `console.log('start ${starts.shift()}'); ${FOREVER}`];
  const { keeper, pids } = keep('', { logFile, args });
  await keeper.whenReady();
  await until('it has begun', () => readFileSync(logFile, 'utf8').includes('start 1'));
  process.kill(pids[0] ?? 0, 'SIGKILL');
  await until('it has begun again', () => readFileSync(logFile, 'utf8').includes('start 2'));
});

const SLACK = '/proc/self/timerslack_ns';

test('a process and its children have the timer slack that they are given, and nobody else has it', async () => {
  const before = readFileSync(SLACK, 'utf8');
  const script = `console.log(require('node:child_process').execFileSync('cat', ['${SLACK}'], { encoding: 'utf8' })); ${FOREVER}`;
  const places = testStackPaths();
  const slackOf = async (timerSlackMs?: number) => {
    const logFile = logFileOf(places, `slack-${timerSlackMs}`);
    keep(script, { logFile }, timerSlackMs);
    await until('it has said its slack', () => existsSync(logFile) && readFileSync(logFile, 'utf8').includes('\n'));
    return Number(readFileSync(logFile, 'utf8'));
  };
  expect(await slackOf(40)).toBe(40_000_000);
  expect(await slackOf()).toBe(Number(before));
  expect(readFileSync(SLACK, 'utf8')).toBe(before);
});
