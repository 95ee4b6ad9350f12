import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createKeyText, hashKey, keyPrefixOf, parseKey } from './key-text.ts';

const kinds = ['publishable', 'secret'] as const;
const environments = ['production', 'development'] as const;
const forms = kinds.flatMap((kind) => environments.map((environment) => ({ kind, environment })));

describe('a key', () => {
  it('has one of the four documented prefixes', () => {
    expect(forms.map((form) => keyPrefixOf('svcapik', form))).toEqual([
      'pk_svcapik-',
      'pk_svcapik_test-',
      'sk_svcapik-',
      'sk_svcapik_test-',
    ]);
  });

  it('is rejected without a lookup if a single character differs', () => {
    const key = createKeyText('svcapik', { kind: 'publishable', environment: 'production' });
    fc.assert(
      fc.property(fc.nat(key.length - 1), fc.string({ minLength: 1, maxLength: 1 }), (at, character) => {
        fc.pre(key[at] !== character);
        expect(parseKey('svcapik', key.slice(0, at) + character + key.slice(at + 1))).toBeNull();
      }),
      { numRuns: 2000 },
    );
  });

  it('is parsed only with the prefix it was created with, and rejected if two characters are swapped', () => {
    const prefixes = fc.stringMatching(/^[a-z0-9]{1,20}$/);
    fc.assert(
      fc.property(prefixes, fc.constantFrom(...forms), fc.nat(35), fc.nat(35), (prefix, form, i, j) => {
        const key = createKeyText(prefix, form);
        expect(parseKey(prefix, key)).toEqual(form);
        const characters = [...key];
        const [at, other] = [key.length - 1 - i, key.length - 1 - j];
        [characters[at], characters[other]] = [characters[other]!, characters[at]!];
        const swapped = characters.join('');
        expect(parseKey(prefix, swapped)).toEqual(swapped === key ? form : null);
      }),
      { numRuns: 2000 },
    );
  });

  it('is never parsed from a random string', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(parseKey('svcapik', text)).toBeNull();
      }),
    );
    expect(parseKey('svcapik', '')).toBeNull();
    expect(parseKey('svcapik', `pk_svcapik-${'é'.repeat(36)}`)).toBeNull();
  });

  it('contains all base62 characters with equal frequency', () => {
    const counts = new Map<string, number>();
    for (let i = 0; i < 4000; i++) {
      const key = createKeyText('svcapik', { kind: 'secret', environment: 'production' });
      for (const character of key.slice(11, 41)) counts.set(character, (counts.get(character) ?? 0) + 1);
    }
    expect(counts.size).toBe(62);
    // 120,000 draws: 1,935 per character, standard deviation 44. Modulo bias would favour eight characters by 25 %.
    for (const count of counts.values()) expect(Math.abs(count - 1935)).toBeLessThan(300);
  });

  it('is stored as a SHA-256 hash', () => {
    expect(hashKey('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  });
});
