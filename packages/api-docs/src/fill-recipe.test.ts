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

it('a shell passes every value that fillCommand inserts unchanged', () => {
  const unit = fc.constantFrom('a', '0', ' ', "'", '"', '$', '`', '\\', '&', '%', ';', '-', 'é', '\n');
  const text = fc.string({ unit, minLength: 1, maxLength: 8 });
  const overHttp = 'printf %s "http://localhost/?param_environment=production&param_since=2026-06-08"';
  const withClient = 'printf "%s|" --user analyst --param_environment=production --param_since=2026-06-08';
  const print = (command: string, params: Record<string, string>, user: string) =>
    execFileSync('sh', ['-c', fillCommand(command, params, user)], { encoding: 'utf8' });
  fc.assert(
    fc.property(text, text, text, (environment, since, user) => {
      const { searchParams } = new URL(print(overHttp, { environment, since }, user));
      expect([searchParams.get('param_environment'), searchParams.get('param_since')]).toEqual([environment, since]);
      expect(print(withClient, { environment, since }, user)).toBe(
        `--user|${user}|--param_environment=${environment}|--param_since=${since}|`,
      );
    }),
    { numRuns: 30 },
  );
});
