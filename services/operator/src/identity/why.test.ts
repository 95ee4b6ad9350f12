import fc from 'fast-check';
import { expect, it } from 'vitest';
import { linkRow } from './test/link-row.ts';
import { findChain } from './why.ts';

const name = (number: number) => `key ${number}`;

it('the chain of links between two identities leads from one to the other, each link starting where the one before ended', () => {
  // Number n is linked to an arbitrary earlier one: all of them are one person.
  const parents = fc.array(fc.nat(), { minLength: 1, maxLength: 60 });
  fc.assert(
    fc.property(parents, fc.nat(), fc.nat(), (numbers, one, two) => {
      const rows = numbers.map((number, at) => linkRow({ a: name(number % (at + 1)), b: name(at + 1) }));
      const [from, to] = [name(one % (rows.length + 1)), name(two % (rows.length + 1))];
      let at = from;
      for (const { a, b } of findChain(rows, from, to)!) {
        expect([a.key, b.key]).toContain(at);
        at = a.key === at ? b.key : a.key;
      }
      expect(at).toBe(to);
    }),
  );
});

it('the chain of links between two identities uses a link between two already joined identities only where the joining links leave a gap', () => {
  const [ab, bc] = ['ab', 'bc'].map(([a, b]) => linkRow({ a: a!, b: b! }));
  const ac = linkRow({ a: 'a', b: 'c', outcome: 'unchanged' });
  expect(findChain([ac, ab!, bc!], 'a', 'c')).toEqual([ab, bc]);
  expect(findChain([ac, ab!], 'a', 'c')).toEqual([ac]);
});

it('the chain of links between two identities is the shortest where two were linked again, and null where rows are missing', () => {
  const [ab, bc, cd, ac] = ['ab', 'bc', 'cd', 'ac'].map(([a, b]) => linkRow({ a: a!, b: b! }));
  expect(findChain([ab!, bc!, cd!, ac!], 'a', 'd')).toEqual([ac, cd]);
  expect(findChain([ab!, cd!], 'a', 'd')).toBeNull();
  expect(findChain([], 'a', 'd')).toBeNull();
});
