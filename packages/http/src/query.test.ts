import { codePoint } from '@playline/testkit/code-point';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { parseQuery, singleValueOf } from './exchange.ts';

const text = fc.string({ unit: codePoint });

it('reads back every parameter that URLSearchParams or encodeURIComponent writes, in order', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(text, text)), (pairs) => {
      const expected = new Map<string, string[]>();
      for (const [name, value] of pairs) expected.set(name, [...(expected.get(name) ?? []), value]);
      const encoded = pairs.map((pair) => pair.map(encodeURIComponent).join('=')).filter((part) => part !== '=');
      if (!expected.has('')) expect(parseQuery(`/path?${encoded.join('&')}`)).toEqual(expected);
      expect(parseQuery(`/path?${new URLSearchParams(pairs)}`)).toEqual(expected);
    }),
  );
});

it('answers any text after the mark with parameters or with a fault for the caller, never with another', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('%', 'f', '8', 'c', '=', '&', '+', 'é', '?', ' ') }), (query) => {
      try {
        for (const [name, values] of parseQuery(`?${query}`)) {
          expect(name.isWellFormed()).toBe(true);
          for (const value of values) expect(value).not.toContain('\ufffd');
        }
      } catch (error) {
        expect(error).toMatchObject({ code: 'VALIDATION_ERROR' });
      }
    }),
  );
});

it('takes names such as __proto__ for parameters and nothing else', () => {
  expect(singleValueOf(parseQuery('?__proto__=a&constructor=b'), 'anonymousId')).toBeUndefined();
  expect(singleValueOf(parseQuery('?__proto__=a'), '__proto__')).toBe('a');
});
