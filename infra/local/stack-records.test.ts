import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { endOrphans, findOrphans, openChildrenFile } from './children.ts';
import { endProcess, isAlive, markOf } from './process-mark.ts';
import { readStackFile, type StackFile, stackFilePath, writeStackFile } from './stack-file.ts';
import { claimSupervision, findSupervisor, releaseSupervision } from './supervisor.ts';
import { testStackPaths } from './test/paths.ts';
import { leaveChildren, startSleeper } from './test/sleeper.ts';

const STACK: StackFile = {
  clickhouse: { url: 'http://127.0.0.1:1', user: 'operator', password: 'secret', database: 'playline' },
  redis: 'redis://:secret@127.0.0.1:2',
  kafka: ['127.0.0.1:3'],
  registry: 'http://127.0.0.1:4/apis/ccompat/v7',
  processes: { kafka: 5 },
};

test('the stack file is readable only by its owner and is replaced by rename', () => {
  const paths = testStackPaths();
  writeStackFile(paths, STACK);
  const before = statSync(stackFilePath(paths));
  expect(before.mode & 0o777).toBe(0o600);
  writeStackFile(paths, { ...STACK, processes: {} });
  // Another inode: a reader that has the old file open never sees a part of the new one.
  expect(statSync(stackFilePath(paths)).ino).not.toBe(before.ino);
  expect(readStackFile(paths)?.processes).toEqual({});
  expect(readdirSync(paths.state)).toEqual(['stack.json']);
});

test('a process is identified by its id and its start, so another process with the same id is never signalled', async () => {
  const pid = startSleeper();
  const mark = markOf(pid) ?? '';
  expect(isAlive({ name: 'sleeper', pid, mark })).toBe(true);
  const namesake = { name: 'sleeper', pid, mark: mark.replace(/\d$/, (digit) => String((Number(digit) + 1) % 10)) };
  await endProcess(namesake, 100);
  expect(markOf(pid)).toBe(mark);
  await endProcess({ name: 'sleeper', pid, mark }, 10_000);
  expect(markOf(pid)).toBeNull();
});

test('the orphans of a dead supervisor are ended by their records, also a paused one, and no other process', async () => {
  const paths = testStackPaths();
  const [orphan, stranger] = [startSleeper(), startSleeper()];
  process.kill(orphan, 'SIGSTOP');
  leaveChildren(paths, { kafka: orphan, redis: { pid: stranger, mark: 'before a restart of the machine' } });
  expect(await endOrphans(paths)).toEqual(['kafka']);
  expect(markOf(orphan)).toBeNull();
  expect(markOf(stranger)).not.toBeNull();
});

test('an unreadable record of processes is moved aside, and one line names the processes that may still run', async () => {
  const paths = testStackPaths();
  const left = startSleeper();
  writeFileSync(join(paths.state, 'children.json'), '{ half');
  writeStackFile(paths, { ...STACK, processes: { kafka: left, redis: 0 } });
  const lines: string[] = [];
  expect(findOrphans(paths)).toEqual([]);
  expect(await endOrphans(paths, (line) => lines.push(line))).toEqual([]);
  expect(lines).toEqual([
    `children.json was unreadable and is now children.json.unreadable; processes of the last stack may still run: kafka (\`kill ${left}\`)`,
  ]);
  expect(readFileSync(join(paths.state, 'children.json.unreadable'), 'utf8')).toBe('{ half');
  expect(await endOrphans(paths, (line) => lines.push(line))).toEqual([]);
  expect(lines).toHaveLength(1);
});

test('the children of a living owner are not ended', async () => {
  const paths = testStackPaths();
  const child = startSleeper();
  const children = openChildrenFile(paths);
  children.set('kafka', child);
  expect(await endOrphans(paths)).toEqual([]);
  expect(markOf(child)).not.toBeNull();
});

test('a checkout has one supervisor, and a second start finds it', () => {
  const paths = testStackPaths();
  expect(claimSupervision(paths)).toBeNull();
  expect(claimSupervision(paths)).toMatchObject({ pid: process.pid });
  expect(readFileSync(join(paths.state, 'supervisor.pid'), 'utf8').split('\n')[0]).toBe(String(process.pid));
  releaseSupervision(paths);
  expect(findSupervisor(paths)).toBeNull();
});

test('a supervisor from before a reboot does not count when another process has its id', () => {
  const paths = testStackPaths();
  writeFileSync(join(paths.state, 'supervisor.pid'), `${startSleeper()}\nbefore a restart of the machine\n`);
  expect(findSupervisor(paths)).toBeNull();
  expect(claimSupervision(paths)).toBeNull();
  expect(findSupervisor(paths)).toMatchObject({ pid: process.pid });
});
