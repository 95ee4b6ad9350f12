import { expect, test, vi } from 'vitest';
import { doctor } from './commands/doctor.ts';
import { status } from './commands/status.ts';
import { type Condition, writeConditions } from './condition.ts';
import { claimSupervision } from './supervisor.ts';
import { testStackPaths } from './test/paths.ts';
import { startSleeper, writeChildrenFile } from './test/sleeper.ts';

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

test('status and doctor list the orphans of a dead supervisor with a fix, and return 1', async () => {
  const paths = testStackPaths();
  writeChildrenFile(paths, { gateway: startSleeper(), kafka: startSleeper(), clickhouse: 0 });
  const sentence =
    'the supervisor is dead, but processes are still running: gateway, kafka; `npm run up` restarts the stack';
  expect(await run(() => status(paths, []))).toEqual({ code: 1, out: sentence });
  const found = await run(() => doctor(paths));
  expect(found.out).toContain(sentence);
  expect(found.out).not.toContain('the stack is not running');
  expect(found.code).toBe(1);
});

test('status reports a dead supervisor without processes as a stopped stack', async () => {
  const paths = testStackPaths();
  writeChildrenFile(paths, { clickhouse: 0 });
  const shown = await run(() => status(paths, []));
  expect(shown.code).toBe(3);
  expect(shown.out).toContain('the stack is not running');
});

test('status and doctor show how to restart a process that has not been ready for a minute', async () => {
  const paths = testStackPaths();
  claimSupervision(paths);
  const frozen: Condition = {
    name: 'kafka',
    state: 'not serving',
    pid: process.pid,
    sinceAt: new Date().toISOString(),
    restarts: 0,
    reason: 'it does not respond',
    lastError: null,
    isSilent: true,
  };
  writeConditions(paths, [frozen, { ...frozen, name: 'redis', isSilent: false }]);
  const fix = `kafka has not been ready for a minute. It may be waiting; \`kill -9 ${process.pid}\` restarts it`;
  const shown = await run(() => status(paths, []));
  expect(shown.out).toMatch(/^Playline \d+\.\d+\.\d+\n/);
  expect(shown.out).toMatch(/^kafka .*\n +why: it does not respond\n +fix: kafka has not been ready/m);
  expect(shown.out.split(fix)).toHaveLength(2);
  expect(shown.out).not.toContain('redis has not been ready');
  const found = await run(() => doctor(paths));
  expect(found.out).toContain(fix);
  expect([shown.code, found.code]).toEqual([1, 1]);
});
