import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import { findLines } from './commands/logs.ts';
import { parseLogSearch } from './log-filter.ts';
import { logFileOf } from './paths.ts';
import { testStackPaths } from './test/paths.ts';

const NOW_MS = Date.parse('2026-01-01T12:00:00Z');
const TRACE = '0af7651916cd43dd8448eb211c80319c';
const lineOf = (minutesAgo: number, level: string, fields: object = {}) =>
  JSON.stringify({ level, time: new Date(NOW_MS - minutesAgo * 60_000).toISOString(), ...fields });

const LINES = {
  old: lineOf(20, 'error', { msg: 'request failed', traceId: TRACE }),
  info: lineOf(5, 'info', { msg: 'service started' }),
  warn: lineOf(5, 'warn', { msg: 'Kafka is unreachable' }),
  plain: '[main] INFO Kafka server started (kafka.server.KafkaServer)',
  empty: '',
};

function found(...args: string[]): string[] {
  const { matches } = parseLogSearch(args, NOW_MS);
  return Object.entries(LINES).flatMap(([name, line]) => (matches?.(line) ? [name] : []));
}

test('logs selects lines by age, level, text and trace id, and by all of them together', () => {
  expect(found('--since', '10m')).toEqual(['info', 'warn']);
  expect(found('--level', 'warn')).toEqual(['old', 'warn']);
  expect(found('--grep', 'kafka')).toEqual(['warn', 'plain']);
  expect(found('--trace', TRACE.toUpperCase())).toEqual(['old']);
  expect(found('--since', '1h', '--level', 'warn', '--grep', 'FAILED', '--trace', TRACE)).toEqual(['old']);
  expect(found('--since', '10m', '--trace', TRACE)).toEqual([]);
});

test('logs without an option that selects lines shows the last lines of the named processes', () => {
  expect(parseLogSearch(['gateway', 'kafka'], NOW_MS)).toEqual({ names: ['gateway', 'kafka'], matches: null });
});

test.each([
  ['--since', 'yesterday', 'a duration such as 30s'],
  ['--level', 'loud', 'trace, debug, info, warn, error, fatal'],
  ['--trace', 'abc', '32 hexadecimal digits'],
])('logs refuses %s %s and explains which value is expected', (option, value, expected) => {
  expect(() => parseLogSearch([option, value], NOW_MS)).toThrow(expected);
});

test('logs shows the matching lines of all processes in the order of their times, including renamed log files', async () => {
  const paths = testStackPaths();
  mkdirSync(dirname(logFileOf(paths, 'gateway')), { recursive: true });
  const write = (name: string, ...lines: string[]) => writeFileSync(logFileOf(paths, name), `${lines.join('\n')}\n`);
  write('gateway', lineOf(3, 'error', { msg: 'third' }), lineOf(1, 'error', { msg: 'fourth' }));
  writeFileSync(`${logFileOf(paths, 'gateway')}.1`, `${lineOf(9, 'error', { msg: 'first' })}\n`);
  write('portal', lineOf(5, 'error', { msg: 'second' }), lineOf(4, 'info', { msg: 'not an error' }));
  const { matches } = parseLogSearch(['--level', 'error'], NOW_MS);
  const found = await findLines(paths, ['gateway', 'portal'], matches!);
  expect(found.map(({ name, line }) => [name, JSON.parse(line).msg])).toEqual([
    ['gateway', 'first'],
    ['portal', 'second'],
    ['gateway', 'third'],
    ['gateway', 'fourth'],
  ]);
});
