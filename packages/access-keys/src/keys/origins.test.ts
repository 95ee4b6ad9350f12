import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ORIGINS_MAX, parseOrigins } from './access-key.ts';

describe('origins', () => {
  it('are normalised to the form browsers send, without duplicates', () => {
    const origin = fc.webUrl({ validSchemes: ['http', 'https'] }).map((text) => new URL(text).origin);
    fc.assert(
      fc.property(origin, (text) => {
        const upper = text.toUpperCase();
        expect(parseOrigins([text, `${text}/`, upper])).toEqual([text]);
      }),
    );
  });

  it.each([
    ['https://game.example:443', 'https://game.example'],
    ['http://localhost:5173', 'http://localhost:5173'],
    ['http://[::1]:80/', 'http://[::1]'],
    ['https://b\u00fccher.example', 'https://xn--bcher-kva.example'],
  ])('%s is normalised to %s', (text, origin) => {
    expect(parseOrigins([text])).toEqual([origin]);
  });

  it.each([
    ...['', 'null', '*', 'game.example', 'https://', 'https://*.game.example', 'https://game.example/path'],
    ...['https://game.example?', 'https://game.example#x', 'https://user@game.example', 'file:///', 'javascript:1'],
    ...['https://a.example https://b.example', `https://${'a'.repeat(260)}.example`],
  ])('%j is rejected', (text) => {
    expect(() => parseOrigins([text])).toThrow(/An origin has a scheme/);
  });

  it('are limited to 50 per key', () => {
    const texts = Array.from({ length: ORIGINS_MAX + 1 }, (_, at) => `https://game-${at}.example`);
    expect(parseOrigins(texts.slice(1))).toHaveLength(ORIGINS_MAX);
    expect(() => parseOrigins(texts)).toThrow('At most 50 origins');
  });
});
