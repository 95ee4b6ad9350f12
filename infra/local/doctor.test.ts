import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { redactUrls } from './command.ts';
import { checkAmount, examine, parseAvailableMemory, parseRedisVersion } from './commands/doctor.ts';
import { summarise } from './commands/test.ts';
import { parseJavaMajor } from './java.ts';
import { installCommand } from './machine.ts';
import { freePorts } from './ports.ts';
import { testStackPaths } from './test/paths.ts';

test('doctor suggests a fix for every problem', async () => {
  const [port = 0] = await freePorts(1);
  const server = createServer();
  await new Promise<void>((done) => server.listen(port, '127.0.0.1', done));
  onTestFinished(() => void server.close());
  const environment = { PLAYLINE_KAFKA_PORT: String(port), PLAYLINE_REDIS_PORT: 'eleven' };
  const findings = await examine(testStackPaths(), { environment, isRunning: false });
  const bad = findings.filter((finding) => finding.level === 'bad').map((finding) => finding.what);
  expect(bad).toContain(`port ${port} for kafka is in use`);
  expect(bad).toContainEqual(expect.stringContaining('PLAYLINE_REDIS_PORT'));
  for (const finding of findings) if (finding.level !== 'good') expect(finding.fix).toBeTruthy();
});

test('doctor checks every disk with data, including disks that symbolic links point to', async () => {
  const paths = testStackPaths();
  const otherDisk = mkdtempSync('/dev/shm/playline-disk-');
  onTestFinished(() => rmSync(otherDisk, { recursive: true }));
  mkdirSync(join(paths.state, 'data'), { recursive: true });
  symlinkSync(otherDisk, join(paths.state, 'data', 'redis'));
  mkdirSync(join(paths.state, 'data', 'kafka'));
  symlinkSync('/dev', join(paths.state, 'data', 'kafka', 'data'));
  const findings = await examine(paths, { environment: {}, isRunning: true });
  const disks = findings.map(({ what }) => what).filter((what) => what.startsWith('disk'));
  expect(disks).toEqual([
    expect.stringMatching(/^disk: /),
    expect.stringContaining(`disk of ${join(paths.state, 'data', 'kafka', 'data')}: `),
    expect.stringContaining(`disk of ${join(paths.state, 'data', 'redis')}: `),
  ]);
});

test('doctor reports insufficient memory or disk space with the available and the required amount', () => {
  const need = { need: 2 * 1024 ** 3, fix: 'free space' };
  expect(checkAmount('disk', 3 * 1024 ** 3, need).level).toBe('good');
  expect(checkAmount('disk', 1024 ** 3, need)).toEqual({
    level: 'bad',
    what: 'disk: 1.0 GB free, 2.0 GB needed',
    fix: 'free space',
  });
});

test('doctor parses available memory and the versions of Java and Redis', () => {
  expect(parseAvailableMemory('MemTotal: 9 kB\nMemAvailable:   2048 kB\n')).toBe(2 * 1024 ** 2);
  expect(parseAvailableMemory('something else')).toBeNull();
  expect(parseJavaMajor('openjdk version "17.0.15" 2025-04-15')).toBe(17);
  expect(parseJavaMajor('java version "1.8.0_402"')).toBe(1);
  expect(parseJavaMajor('command not found')).toBeNull();
  expect(parseRedisVersion('Redis server v=7.0.15 sha=0:0 malloc=jemalloc')).toEqual([7, 0]);
  expect(parseRedisVersion('')).toBeNull();
});

test('the manual installation command contains every missing package', () => {
  const missing = [
    { what: 'Java', debian: 'default-jre-headless', brew: 'openjdk@21' },
    { what: 'Redis', debian: 'redis-server', brew: 'redis' },
  ];
  expect(installCommand(missing)).toContain(
    process.platform === 'darwin' ? 'openjdk@21 redis' : 'default-jre-headless redis-server',
  );
});

test('redactUrls removes URLs from the output of tools', () => {
  expect(redactUrls('GET https://registry.example/a/b failed (http://x:1/)')).toBe('GET <address> failed (<address>)');
});

test('the summary counts a run without tests, a broken test file and a failed check as failures', () => {
  expect(summarise(null, 0)).toEqual({ passed: 0, failed: 1 });
  expect(summarise({ numPassedTests: 3, numFailedTests: 0 }, 2)).toEqual({ passed: 3, failed: 2 });
  const testResults = [
    { status: 'failed', assertionResults: [] },
    { status: 'passed', assertionResults: [{}] },
  ];
  expect(summarise({ numPassedTests: 1, numFailedTests: 0, testResults }, 0)).toEqual({ passed: 1, failed: 1 });
});
