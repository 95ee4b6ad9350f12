import { expect, it } from 'vitest';
import { DigestTable } from './digest-table.ts';

it('a growing digest table returns the last value of each string, and 0 for any other string', () => {
  const table = new DigestTable();
  const count = 20_000;
  for (let at = 1; at <= count; at++) table.set(`text ${at}`, at);
  for (let at = 1; at <= count; at += 7) table.set(`text ${at}`, 2 ** 32 - at);
  const lastOf = (at: number) => (at % 7 === 1 ? 2 ** 32 - at : at);
  const wrong = Array.from({ length: count }, (_, index) => index + 1).filter(
    (at) => table.get(`text ${at}`) !== lastOf(at) || table.get(`other ${at}`) !== 0,
  );
  expect(wrong).toEqual([]);
});
