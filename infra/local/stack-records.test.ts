import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { endOrphans, findOrphans, openChildrenFile } from './children.ts';
import { endProcess, isAlive, markOf } from './process-mark.ts';
import { readStackFile, type StackFile, stackFilePath, writeStackFile } from './stack-file.ts';
import { claimSupervision, findSupervisor, releaseSupervision } from './supervisor.ts';
import { testStackPaths } from './test/paths.ts';
import { startSleeper, writeChildrenFile } from './test/sleeper.ts';

const STACK: StackFile = {
  clickhouse: { url: 'http://127.0.0.1:1', user: 'operator', password: 'secret', database: 'playline' },
  redis: 'redis://:secret@127.0.0.1:2',
  kafka: ['127.0.0.1:3'],
  registry: 'http://127.0.0.1:4/apis/ccompat/v7',
  processes: { kafka: 5 },
};

test('the stack file is readable only by its owner and is replaced atomically', () => {
  const paths = testStackPaths();
  writeStackFile(paths, STACK);
  const before = statSync(stackFilePath(paths));
  expect(before.mode & 0o777).toBe(0o600);
  writeStackFile(paths, { ...STACK, processes: {} });
  // A new inode shows that the file was replaced, so a reader never sees a partial file.
  expect(statSync(stackFilePath(paths)).ino).not.toBe(before.ino);
  expect(readStackFile(paths)?.processes).toEqual({});
  expect(readdirSync(paths.state)).toEqual(['stack.json']);
});

test('endProcess never signals another process that reuses the pid', async () => {
  const pid = startSleeper();
  const mark = markOf(pid) ?? '';
  expect(isAlive({ name: 'sleeper', pid, mark })).toBe(true);
  const otherProcess = { name: 'sleeper', pid, mark: mark.replace(/\d$/, (digit) => String((Number(digit) + 1) % 10)) };
  await endProcess(otherProcess, 100);
  expect(markOf(pid)).toBe(mark);
  await endProcess({ name: 'sleeper', pid, mark }, 10_000);
  expect(markOf(pid)).toBeNull();
});

test('endOrphans stops recorded orphans, including paused processes, and no other process', async () => {
  const paths = testStackPaths();
  const [orphan, unrelated] = [startSleeper(), startSleeper()];
  process.kill(orphan, 'SIGSTOP');
  writeChildrenFile(paths, { kafka: orphan, redis: { pid: unrelated, mark: 'before a reboot' } });
  expect(await endOrphans(paths)).toEqual(['kafka']);
  expect(markOf(orphan)).toBeNull();
  expect(markOf(unrelated)).not.toBeNull();
});

test('endOrphans renames an unreadable children file and reports processes that may still be running', async () => {
  const paths = testStackPaths();
  const pid = startSleeper();
  writeFileSync(join(paths.state, 'children.json'), '{ half');
  writeStackFile(paths, { ...STACK, processes: { kafka: pid, redis: 0 } });
  const lines: string[] = [];
  expect(findOrphans(paths)).toEqual([]);
  expect(await endOrphans(paths, (line) => lines.push(line))).toEqual([]);
  expect(lines).toEqual([
    `children.json was unreadable and was renamed to children.json.unreadable; processes of the last stack may still be running: kafka (\`kill ${pid}\`)`,
  ]);
  expect(readFileSync(join(paths.state, 'children.json.unreadable'), 'utf8')).toBe('{ half');
  expect(await endOrphans(paths, (line) => lines.push(line))).toEqual([]);
  expect(lines).toHaveLength(1);
});

test('endOrphans does not stop the children of a running owner', async () => {
  const paths = testStackPaths();
  const child = startSleeper();
  const children = openChildrenFile(paths);
  children.set('kafka', child);
  expect(await endOrphans(paths)).toEqual([]);
  expect(markOf(child)).not.toBeNull();
});

test('a checkout has one supervisor, which a second start finds', () => {
  const paths = testStackPaths();
  expect(claimSupervision(paths)).toBeNull();
  expect(claimSupervision(paths)).toMatchObject({ pid: process.pid });
  expect(readFileSync(join(paths.state, 'supervisor.pid'), 'utf8').split('\n')[0]).toBe(String(process.pid));
  releaseSupervision(paths);
  expect(findSupervisor(paths)).toBeNull();
});

test('findSupervisor ignores a supervisor from before a reboot whose pid was reused', () => {
  const paths = testStackPaths();
  writeFileSync(join(paths.state, 'supervisor.pid'), `${startSleeper()}\nbefore a reboot\n`);
  expect(findSupervisor(paths)).toBeNull();
  expect(claimSupervision(paths)).toBeNull();
  expect(findSupervisor(paths)).toMatchObject({ pid: process.pid });
});
