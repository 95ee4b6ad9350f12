import fc from 'fast-check';
import { expect, it } from 'vitest';
import { linkRow } from './test/link-row.ts';
import { findChain } from './why.ts';

const name = (number: number) => `key ${number}`;

it('findChain returns a connected chain of links between two identities', () => {
  // Each identity is linked to a random earlier identity, so all identities belong to one person.
  const parents = fc.array(fc.nat(), { minLength: 1, maxLength: 60 });
  fc.assert(
    fc.property(parents, fc.nat(), fc.nat(), (numbers, start, end) => {
      const rows = numbers.map((number, index) => linkRow({ a: name(number % (index + 1)), b: name(index + 1) }));
      const [from, to] = [name(start % (rows.length + 1)), name(end % (rows.length + 1))];
      let at = from;
      for (const { a, b } of findChain(rows, from, to)!) {
        expect([a.key, b.key]).toContain(at);
        at = a.key === at ? b.key : a.key;
      }
      expect(at).toBe(to);
    }),
  );
});

it('findChain uses an unchanged link only if the joining links do not connect the two identities', () => {
  const [ab, bc] = ['ab', 'bc'].map(([a, b]) => linkRow({ a: a!, b: b! }));
  const ac = linkRow({ a: 'a', b: 'c', outcome: 'unchanged' });
  expect(findChain([ac, ab!, bc!], 'a', 'c')).toEqual([ab, bc]);
  expect(findChain([ac, ab!], 'a', 'c')).toEqual([ac]);
});

it('findChain returns the shortest chain if a pair was linked twice, and null if rows are missing', () => {
  const [ab, bc, cd, ac] = ['ab', 'bc', 'cd', 'ac'].map(([a, b]) => linkRow({ a: a!, b: b! }));
  expect(findChain([ab!, bc!, cd!, ac!], 'a', 'd')).toEqual([ac, cd]);
  expect(findChain([ab!, cd!], 'a', 'd')).toBeNull();
  expect(findChain([], 'a', 'd')).toBeNull();
});
