import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { doctor } from './commands/doctor.ts';
import { status } from './commands/status.ts';
import { type Condition, writeConditions } from './condition.ts';
import type { StackPaths } from './paths.ts';
import { markOf } from './process-mark.ts';
import { claimSupervision } from './supervisor.ts';
import { testStackPaths } from './test/paths.ts';

/** A process that lives until the test ends. */
function startSleeper(): number {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child.pid ?? 0;
}

/** Writes what a killed supervisor leaves behind. Processes whose id is not 0 still live. */
function leaveBehind(places: StackPaths, pids: Record<string, number>): void {
  const owner = { name: 'owner', pid: process.pid, mark: 'another start of the machine' };
  const children = Object.entries(pids).map(([name, pid]) => ({ name, pid, mark: markOf(pid) ?? 'gone' }));
  writeFileSync(join(places.state, 'children.json'), JSON.stringify({ owner, children }));
}

/** Output and exit code of a command. */
async function run(command: () => Promise<number>): Promise<{ code: number; out: string }> {
  const lines: string[] = [];
  const spy = vi.spyOn(console, 'log').mockImplementation((line) => void lines.push(String(line)));
  try {
    const code = await command();
    return { code, out: lines.join('\n') };
  } finally {
    spy.mockRestore();
  }
}

test('status and doctor name what a dead supervisor left running and how to end it, and both end with 1', async () => {
  const places = testStackPaths();
  leaveBehind(places, { gateway: startSleeper(), kafka: startSleeper(), clickhouse: 0 });
  const sentence =
    'the supervisor is dead; gateway, kafka still run without it; `npm run up` ends them and starts anew';
  const told = await run(() => status(places, []));
  expect(told).toEqual({ code: 1, out: sentence });
  const found = await run(() => doctor(places));
  expect(found.out).toContain(sentence);
  expect(found.out).not.toContain('the stack is not running');
  expect(found.code).toBe(1);
});

test('a dead supervisor that left nothing running counts as a stack that does not run', async () => {
  const places = testStackPaths();
  leaveBehind(places, { clickhouse: 0 });
  const told = await run(() => status(places, []));
  expect(told.code).toBe(3);
  expect(told.out).toContain('no supervisor of a stack runs here');
});

test('a process that has not served for a minute is shown with the command that restarts it, below its reason', async () => {
  const places = testStackPaths();
  claimSupervision(places);
  const frozen: Condition = {
    name: 'kafka',
    state: 'not serving',
    pid: process.pid,
    sinceAt: new Date().toISOString(),
    restarts: 0,
    reason: 'it does not answer',
    lastError: null,
    isSilent: true,
  };
  writeConditions(places, [frozen, { ...frozen, name: 'redis', isSilent: false }]);
  const mend = `kafka has not served for a minute: what it waits for may come back; \`kill -9 ${process.pid}\` has it started anew`;
  const told = await run(() => status(places, []));
  expect(told.out).toMatch(/^Playline \d+\.\d+\.\d+\n/);
  expect(told.out).toMatch(/^kafka .*\n +why: it does not answer\n +do: kafka has not served/m);
  expect(told.out.split(mend)).toHaveLength(2);
  expect(told.out).not.toContain('redis has not served');
  const found = await run(() => doctor(places));
  expect(found.out).toContain(mend);
  expect([told.code, found.code]).toEqual([1, 1]);
});
