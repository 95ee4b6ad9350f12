import { expect, test, vi } from 'vitest';
import { doctor } from './commands/doctor.ts';
import { status } from './commands/status.ts';
import { type Condition, writeConditions } from './condition.ts';
import { claimSupervision } from './supervisor.ts';
import { testStackPaths } from './test/paths.ts';
import { leaveChildren, startSleeper } from './test/sleeper.ts';

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

test('status and doctor name the orphans of a dead supervisor and how to end them, and both return 1', async () => {
  const paths = testStackPaths();
  leaveChildren(paths, { gateway: startSleeper(), kafka: startSleeper(), clickhouse: 0 });
  const sentence = 'the supervisor is dead; gateway, kafka still run; `npm run up` ends them and starts the stack';
  expect(await run(() => status(paths, []))).toEqual({ code: 1, out: sentence });
  const found = await run(() => doctor(paths));
  expect(found.out).toContain(sentence);
  expect(found.out).not.toContain('the stack is not running');
  expect(found.code).toBe(1);
});

test('a dead supervisor without running processes counts as a stack that does not run', async () => {
  const paths = testStackPaths();
  leaveChildren(paths, { clickhouse: 0 });
  const shown = await run(() => status(paths, []));
  expect(shown.code).toBe(3);
  expect(shown.out).toContain('the stack is not running');
});

test('status and doctor show the command that restarts a process which has not served for a minute', async () => {
  const paths = testStackPaths();
  claimSupervision(paths);
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
  writeConditions(paths, [frozen, { ...frozen, name: 'redis', isSilent: false }]);
  const fix = `kafka has not served for a minute. It may be waiting; \`kill -9 ${process.pid}\` restarts it`;
  const shown = await run(() => status(paths, []));
  expect(shown.out).toMatch(/^Playline \d+\.\d+\.\d+\n/);
  expect(shown.out).toMatch(/^kafka .*\n +why: it does not answer\n +fix: kafka has not served/m);
  expect(shown.out.split(fix)).toHaveLength(2);
  expect(shown.out).not.toContain('redis has not served');
  const found = await run(() => doctor(paths));
  expect(found.out).toContain(fix);
  expect([shown.code, found.code]).toEqual([1, 1]);
});
