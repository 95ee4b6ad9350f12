import fc from 'fast-check';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { createLibrarySource } from './test/library.ts';
import { describeValues, jsonValueOf, valuesIn } from './values.ts';

const [, listLoans] = createLibrarySource().operations;
if (listLoans === undefined) throw new Error('the library needs an operation that lists loans');

it('valuesIn returns the parameter values from the path and query of an example', () => {
  // URL parsers remove the path segments `.` and `..`.
  const inPath = fc.string({ unit: 'grapheme', minLength: 1 }).filter((text) => !/^\.{1,2}$/.test(text));
  fc.assert(
    fc.property(inPath, fc.string({ unit: 'grapheme' }), (shelf, kind) => {
      const target = `/v1/shelves/${encodeURIComponent(shelf)}/loans?other=1&kind=${encodeURIComponent(kind)}`;
      const example = { ...listLoans.examples[0]!, request: { ...listLoans.examples[0]!.request, target } };
      expect([...valuesIn(listLoans, example)]).toEqual([
        ['shelf', shelf],
        ['kind', kind],
      ]);
    }),
  );
});

it.each([
  ['7', z.int().min(1), 7],
  ['-1.5', z.number(), -1.5],
  ['7', z.string(), '7'],
  ['0', z.int().min(1), undefined],
  ['7.5', z.int(), undefined],
  ['', z.int(), undefined],
  ['1e3', z.int(), undefined],
  ['seven', z.int(), undefined],
  ['{{nextCursor}}', z.string(), undefined],
])('jsonValueOf parses "%s" according to the schema', (text, schema, value) => {
  expect(jsonValueOf(text, schema)).toBe(value);
});

it.each([
  [z.string().max(9), []],
  [z.uuid(), ['uuid']],
  [z.int().min(1), ['integer of at least 1']],
  [z.int().max(9), ['integer of at most 9']],
  [z.number(), ['number']],
  [z.int().max(9).meta({ id: 'Digit' }).default(7), ['integer of at most 9', 'default 7']],
  [z.enum(['a', 'b']).default('a'), ['one of a, b', 'default a']],
])('describeValues lists the constraints and default of schema %#', (schema, phrases) => {
  expect(describeValues(schema)).toEqual(phrases);
});
