import { InvalidArgumentError } from '@commander-js/extra-typings';
import { expect, it } from 'vitest';
import { parseColumn, parsePath, readComment, type TYPE_NAMES, toAddStatement } from './property-column.ts';

const SINCE = '2026-09-01T00:00:00.000Z';
const wanted = { name: 'coins', path: 'economy.coins', type: 'Int64' } as const;
type Type = (typeof TYPE_NAMES)[number];

it.each([
  ['coins', ['coins']],
  ['economy.coins', ['economy', 'coins']],
  ['a\\.b.c', ['a.b', 'c']],
  ['a\\\\.b', ['a\\', 'b']],
  [' a . 0 ', [' a ', ' 0 ']],
])('parsePath splits %s into member names', (text, members) => expect(parsePath(text)).toEqual(members));

it.each(['', '.', 'a.', '.a', 'a..b', 'a\\', 'a\\b', 'a\nb', `${'a.'.repeat(16)}a`, 'a'.repeat(513)])(
  'parsePath refuses %j',
  (text) => expect(() => parsePath(text)).toThrow(InvalidArgumentError),
);

const parse = (type: Type, text: string) => parseColumn({ ...wanted, type, default: text }).fallback;

it.each<[Type, string, string]>([
  ['Int64', '007', '7'],
  ['Int64', '-9223372036854775808', '-9223372036854775808'],
  ['Float64', '1.50', '1.5'],
  ['Float64', '-1E3', '-1000'],
  ['String', '', ''],
  ['LowCardinality(String)', "it's", "it's"],
  ['Bool', 'true', 'true'],
  ['DateTime', '2026-01-02', '2026-01-02T00:00:00.000Z'],
  ['DateTime', '2026-01-02 03:04', '2026-01-02T03:04:00.000Z'],
  ['DateTime', '2026-01-02T03:04:05.678+0200', '2026-01-02T01:04:05.678Z'],
])('parseColumn normalises the %s default %j', (type, text, fallback) => expect(parse(type, text)).toBe(fallback));

it.each<[Type, string]>([
  ['Int64', '1.5'],
  ['Int64', '9223372036854775808'],
  ['Int64', ''],
  ['Float64', 'NaN'],
  ['Float64', '1e999'],
  ['String', 'a\nb'],
  ['String', 'a'.repeat(257)],
  ['Bool', '1'],
  ['DateTime', 'now'],
  ['DateTime', '1800-01-01'],
  ['DateTime', '2026-13-01'],
])('parseColumn refuses %s default %j', (type, text) => expect(() => parse(type, text)).toThrow(/--default: expected/));

it.each<Parameters<typeof parseColumn>[0]>([
  { ...wanted },
  { ...wanted, default: '0' },
  { ...wanted, path: 'it\'s.\\.\\\\."x"', type: 'String', default: "a'b\\" },
])('readComment restores the column from the comment in its ADD COLUMN statement: %j', (values) => {
  const column = { ...parseColumn(values), since: SINCE };
  const [, comment = ''] = /COMMENT '(.*)'$/.exec(toAddStatement(column)) ?? [];
  expect(readComment('coins', comment.replace(/\\(.)/g, '$1'))).toEqual(column);
});

it.each([
  '',
  'a comment of another tool',
  'Property of events: {}',
  'Property of events: {"path":"a","type":"Int8","since":""}',
])('readComment returns null for the comment %j, which the command did not write', (comment) =>
  expect(readComment('coins', comment)).toBeNull(),
);
