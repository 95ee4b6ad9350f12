import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { expect, it } from 'vitest';

const SCRIPT = './assets/fill-recipe.js';
const { fillCommand, fillQuery } = (await import(SCRIPT)) as {
  fillCommand(command: string, params: Record<string, string>, user: string): string;
  fillQuery(query: string, params: Record<string, string>): string;
};

it('fillQuery quotes values by their type, and keeps parameters without a value', () => {
  const query = 'a = {a: String} AND day >= {since: Date} AND n < {n: UInt32} AND b = {b: String}';
  const params = { a: "it's", since: '2026-06-08', n: '7', b: '' };
  expect(fillQuery(query, params)).toBe("a = 'it\\'s' AND day >= toDate('2026-06-08') AND n < 7 AND b = {b: String}");
});

it('a shell passes every value that fillCommand inserts as one percent-encoded parameter', () => {
  const text = fc.string({ unit: 'binary', minLength: 1 }).filter((value) => value.isWellFormed());
  const command = 'printf %s "http://localhost/?param_environment=production&param_since=2026-06-08"';
  fc.assert(
    fc.property(text, text, (environment, since) => {
      const url = execFileSync('sh', ['-c', fillCommand(command, { environment, since }, 'analyst')], {
        encoding: 'utf8',
      });
      const { searchParams } = new URL(url);
      expect([searchParams.get('param_environment'), searchParams.get('param_since')]).toEqual([environment, since]);
    }),
    { numRuns: 30 },
  );
});
