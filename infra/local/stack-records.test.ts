import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { endOrphans, findOrphans, openChildrenFile } from './children.ts';
import type { StackPaths } from './paths.ts';
import { endProcess, isAlive, markOf } from './process-mark.ts';
import { loadSecrets } from './secrets.ts';
import { readStackFile, type StackFile, stackFilePath, writeStackFile } from './stack-file.ts';
import { claimSupervision, findSupervisor, releaseSupervision } from './supervisor.ts';
import { testStackPaths } from './test/paths.ts';

const STACK: StackFile = {
  clickhouse: { url: 'http://127.0.0.1:1', user: 'operator', password: 'secret', database: 'playline' },
  redis: 'redis://:secret@127.0.0.1:2',
  kafka: ['127.0.0.1:3'],
  registry: 'http://127.0.0.1:4/apis/ccompat/v7',
  processes: { kafka: 5 },
};

/** A process that lives until the test ends. */
function startSleeper(): number {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child.pid ?? 0;
}

/** Writes the record that a killed supervisor leaves behind. */
function writeChildren(places: StackPaths, children: { name: string; pid: number; mark: string }[]): void {
  const owner = { name: 'owner', pid: process.pid, mark: 'another start of the machine' };
  writeFileSync(join(places.state, 'children.json'), JSON.stringify({ owner, children }));
}

test('the stack file can be read only by its owner and is replaced by rename', () => {
  const places = testStackPaths();
  writeStackFile(places, STACK);
  const before = statSync(stackFilePath(places));
  expect(before.mode & 0o777).toBe(0o600);
  writeStackFile(places, { ...STACK, processes: {} });
  // Another inode: a reader that has the old file open reads all of it, never a half-written one.
  expect(statSync(stackFilePath(places)).ino).not.toBe(before.ino);
  expect(readStackFile(places)?.processes).toEqual({});
  expect(readdirSync(places.state)).toEqual(['stack.json']);
});

test('secrets are created once, differ from each other and can be read only by their owner', () => {
  const places = testStackPaths();
  const secrets = loadSecrets(places);
  expect(loadSecrets(places)).toEqual(secrets);
  const { analystPasswords, signerKeys, ...others } = secrets;
  // A key pair, whose content is checked where it is created.
  expect(signerKeys).toMatch(/^[A-Za-z0-9_-]{100,}$/);
  const texts = [...Object.values(others), ...Object.values(analystPasswords)];
  expect(new Set(texts).size).toBe(texts.length);
  for (const secret of texts) expect(secret).toMatch(/^[0-9a-f]{64}$/);
  expect(statSync(join(places.state, 'secrets.json')).mode & 0o777).toBe(0o600);
});

test('secrets that cannot be read are not silently replaced by new ones', () => {
  const places = testStackPaths();
  writeFileSync(join(places.state, 'secrets.json'), '{ half');
  expect(() => loadSecrets(places)).toThrow('cannot be read');
});

test('a process is known by its id and its start, so another one with the same id is never signalled', async () => {
  const pid = startSleeper();
  const mark = markOf(pid) ?? '';
  expect(isAlive({ name: 'sleeper', pid, mark })).toBe(true);
  const namesake = { name: 'sleeper', pid, mark: mark.replace(/\d$/, (digit) => String((Number(digit) + 1) % 10)) };
  await endProcess(namesake, 100);
  expect(markOf(pid)).toBe(mark);
  await endProcess({ name: 'sleeper', pid, mark }, 10_000);
  expect(markOf(pid)).toBeNull();
});

test('what a dead supervisor left running is ended by its records, and nothing else', async () => {
  const places = testStackPaths();
  const [orphan, stranger] = [startSleeper(), startSleeper()];
  writeChildren(places, [
    { name: 'kafka', pid: orphan, mark: markOf(orphan) ?? '' },
    { name: 'redis', pid: stranger, mark: 'before the machine was started again' },
  ]);
  expect(await endOrphans(places)).toEqual(['kafka']);
  expect(markOf(orphan)).toBeNull();
  expect(markOf(stranger)).not.toBeNull();
});

test('a broken record of processes is moved aside, with one sentence that names what may still run', async () => {
  const places = testStackPaths();
  const left = startSleeper();
  writeFileSync(join(places.state, 'children.json'), '{ half');
  writeStackFile(places, { ...STACK, processes: { kafka: left, redis: 0 } });
  const said: string[] = [];
  expect(findOrphans(places)).toEqual([]);
  expect(await endOrphans(places, (line) => said.push(line))).toEqual([]);
  expect(said).toEqual([
    `children.json could not be read and was set aside as children.json.unreadable; of the last stack these may still run: kafka (\`kill ${left}\`)`,
  ]);
  expect(readFileSync(join(places.state, 'children.json.unreadable'), 'utf8')).toBe('{ half');
  expect(await endOrphans(places, (line) => said.push(line))).toEqual([]);
  expect(said).toHaveLength(1);
});

test('a paused orphan is ended too', async () => {
  const places = testStackPaths();
  const orphan = startSleeper();
  process.kill(orphan, 'SIGSTOP');
  writeChildren(places, [{ name: 'kafka', pid: orphan, mark: markOf(orphan) ?? '' }]);
  await endOrphans(places);
  expect(markOf(orphan)).toBeNull();
});

test('the children of a living owner are left alone', async () => {
  const places = testStackPaths();
  const child = startSleeper();
  const children = openChildrenFile(places);
  children.set('kafka', child);
  expect(await endOrphans(places)).toEqual([]);
  expect(markOf(child)).not.toBeNull();
});

test('one checkout has one supervisor; a second start finds it', () => {
  const places = testStackPaths();
  expect(claimSupervision(places)).toBeNull();
  expect(claimSupervision(places)).toMatchObject({ pid: process.pid });
  expect(readFileSync(join(places.state, 'supervisor.pid'), 'utf8').split('\n')[0]).toBe(String(process.pid));
  releaseSupervision(places);
  expect(findSupervisor(places)).toBeNull();
});

test('a supervisor from before a reboot does not count, whichever process has its id now', () => {
  const places = testStackPaths();
  writeFileSync(join(places.state, 'supervisor.pid'), `${startSleeper()}\nanother start of the machine\n`);
  expect(findSupervisor(places)).toBeNull();
  expect(claimSupervision(places)).toBeNull();
  expect(findSupervisor(places)).toMatchObject({ pid: process.pid });
});
