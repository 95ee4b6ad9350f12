import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { lastMessageOf } from './logs.ts';
import { testStackPaths } from './test/paths.ts';

function messageOf(lines: readonly string[], from = 0): string {
  const path = join(testStackPaths().state, 'some.log');
  writeFileSync(path, `${lines.join('\n')}\n`);
  return lastMessageOf(path, from);
}

const FRAMES = Array.from({ length: 60 }, (_, at) => `\tat kafka.log.LogManager.load$${at}(LogManager.scala:${at})`);

test('the last message of a log is the line above the stack frames of Java or Node', () => {
  const fault = 'java.lang.IllegalStateException: the folder belongs to another cluster';
  expect(messageOf(['[main] INFO starting', fault, ...FRAMES, '\tat kafka.Kafka.main(Kafka.scala)'])).toBe(fault);
  expect(messageOf([fault, '\tat kafka.Kafka.main(Kafka.scala)', '\t... 12 more'])).toBe(fault);
  const nodeTrace = [
    'TypeError: no such thing',
    '    at Object.<anonymous> (/a/b.ts:1:2)',
    '    at async run (/a.ts:1:1)',
  ];
  expect(messageOf([...nodeTrace, '', 'Node.js v24.11.0', ''])).toBe('TypeError: no such thing');
  expect(messageOf(['one', 'the last'])).toBe('the last');
  expect(messageOf([])).toBe('the log is empty');
});

test('the last message of a service consists of the message and error in the JSON line', () => {
  const line = { level: 'fatal', time: '2026-01-01T00:00:00Z', msg: 'stopped', error: { message: 'no such topic' } };
  expect(messageOf(['before', JSON.stringify(line)])).toBe('stopped: no such topic');
});

test('the last message reports a full disk, with a fix, instead of later messages', () => {
  const lines = [
    'java.io.IOException: No space left on device',
    ...FRAMES,
    'Shutdown broker because all log dirs failed',
  ];
  expect(messageOf(lines)).toMatch(/^the disk is full .*`npm run doctor`/);
  expect(messageOf(['Error: ENOSPC: no space left on device, write', '    at write (node:fs:1:1)'])).toMatch(
    /^the disk is full/,
  );
  // The line about the disk was written by an earlier process.
  expect(messageOf([lines[0]!, 'the last'], lines[0]!.length + 1)).toBe('the last');
});
