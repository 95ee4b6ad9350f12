import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { lastMessageOf } from './logs.ts';
import { testStackPaths } from './test/paths.ts';

/** The last words in a log with these lines. */
function lastWords(lines: readonly string[], from = 0): string {
  const path = join(testStackPaths().state, 'some.log');
  writeFileSync(path, `${lines.join('\n')}\n`);
  return lastMessageOf(path, from);
}

/** As many stack frames as a broker prints below an exception: more than a screen shows. */
const FRAMES = Array.from({ length: 60 }, (_, at) => `\tat kafka.log.LogManager.load$${at}(LogManager.scala:${at})`);

test('the last words of a log are those above the stack frames, also when Node printed the stack', () => {
  const fault = 'java.lang.IllegalStateException: the folder belongs to another cluster';
  expect(lastWords(['[main] INFO starting', fault, ...FRAMES, '\tat kafka.Kafka.main(Kafka.scala)'])).toBe(fault);
  expect(lastWords([fault, '\tat kafka.Kafka.main(Kafka.scala)', '\t... 12 more'])).toBe(fault);
  const ofNode = [
    'TypeError: no such thing',
    '    at Object.<anonymous> (/a/b.ts:1:2)',
    '    at async run (/a.ts:1:1)',
  ];
  expect(lastWords([...ofNode, '', 'Node.js v24.11.0', ''])).toBe('TypeError: no such thing');
  expect(lastWords(['one', 'the last'])).toBe('the last');
  expect(lastWords([])).toBe('it wrote nothing');
});

test('the last words of a service are its message and its error, not its line of JSON', () => {
  const line = { level: 'fatal', time: '2026-01-01T00:00:00Z', msg: 'stopped', error: { message: 'no such topic' } };
  expect(lastWords(['before', JSON.stringify(line)])).toBe('stopped: no such topic');
});

test('a full disk is reported in one sentence with what to do, wherever the log mentions it', () => {
  const words = [
    'java.io.IOException: No space left on device',
    ...FRAMES,
    'Shutdown broker because all log dirs failed',
  ];
  expect(lastWords(words)).toMatch(/^its disk is full .*`npm run doctor`/);
  expect(lastWords(['Error: ENOSPC: no space left on device, write', '    at write (node:fs:1:1)'])).toMatch(
    /^its disk is full/,
  );
  // Written by an earlier process.
  expect(lastWords([words[0]!, 'the last'], words[0]!.length + 1)).toBe('the last');
});
