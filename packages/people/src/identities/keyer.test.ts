import { hash } from 'node:crypto';
import { IDENTITY_KINDS } from '@playline/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createIdentityKeyer } from './keyer.ts';

const pepper = Buffer.alloc(32, 7);
const environment = fc.stringMatching(/^[a-z0-9_-]{1,64}$/);
const kind = fc.constantFrom(...IDENTITY_KINDS);
const id = fc.string({ unit: 'grapheme-composite', minLength: 1, maxLength: 256 }).filter((text) => text.trim() !== '');

describe('IdentityKeyer', () => {
  it('a cached or computed key is the first 16 bytes of SHA-256 over pepper, environment, kind and trimmed id', () => {
    const keyOf = createIdentityKeyer(pepper);
    fc.assert(
      fc.property(environment, kind, id, (environmentId, kindOfId, text) => {
        const input = Buffer.concat([pepper, Buffer.from(`${environmentId}\0${kindOfId}\0${text.trim()}`)]);
        const expected = hash('sha256', input, 'buffer').subarray(0, 16);
        expect(keyOf(environmentId, kindOfId, text)).toEqual(expected);
        expect(keyOf(environmentId, kindOfId, `\t ${text} \n`)).toEqual(expected);
        expect(keyOf(environmentId, kindOfId, text)).toEqual(expected);
        expect(keyOf.ofBytes(environmentId, kindOfId, Buffer.from(text.trim()))).toEqual(expected);
        expect(createIdentityKeyer(pepper).ofBytes(environmentId, kindOfId, Buffer.from(text.trim()))).toEqual(
          expected,
        );
      }),
    );
  });

  it('keys depend on environment, kind, id and pepper, even for ids that contain the separator', () => {
    const keyOf = createIdentityKeyer(pepper);
    const keys = [
      keyOf('e', 'steam', 'a'),
      keyOf('e', 'steam', 'a\0b'),
      keyOf('e', 'steam', 'steam\0a'),
      keyOf('e', 'epic', 'a'),
      keyOf('f', 'steam', 'a'),
      keyOf('e', 'steam', 'A'),
      createIdentityKeyer(Buffer.alloc(32, 8))('e', 'steam', 'a'),
    ];
    expect(new Set(keys.map((key) => key.toString('hex'))).size).toBe(keys.length);
  });

  it('an evicted key is recomputed identically, and its buffer is not overwritten', () => {
    const keyOf = createIdentityKeyer(pepper);
    const [first, second] = [keyOf('e', 'steam', 'first'), keyOf('e', 'steam', 'second')];
    const before = Buffer.from(first);
    for (let n = 0; n < 40_000; n++) {
      keyOf('e', 'custom', `id ${n}`);
      if (n % 5_000 === 0) expect(keyOf('e', 'steam', 'second')).toEqual(second);
    }
    expect(first).toEqual(before);
    expect(keyOf('e', 'steam', 'first')).toEqual(before);
    expect(keyOf('e', 'custom', 'id 39999')).toEqual(createIdentityKeyer(pepper)('e', 'custom', 'id 39999'));
  });

  it('the keyer handles ids longer than the contract allows', () => {
    const long = '\u{1f600}'.repeat(5_000);
    const expected = hash('sha256', Buffer.concat([pepper, Buffer.from(`e\0custom\0${long}`)]), 'buffer').subarray(
      0,
      16,
    );
    const keyOf = createIdentityKeyer(pepper);
    expect(keyOf('e', 'custom', long)).toEqual(expected);
    expect(keyOf.ofBytes('e', 'custom', Buffer.from(long))).toEqual(expected);
  });

  it('the keyer rejects a short pepper', () => {
    expect(() => createIdentityKeyer(Buffer.alloc(31))).toThrow(RangeError);
  });
});
