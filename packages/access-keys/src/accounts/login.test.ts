import { codePoint } from '@playline/testkit/code-point';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { normalizeLogin, toLogin, toPersonName, toReturnPath } from './login.ts';

describe('a login', () => {
  it('is normalised to lower case and NFKC', () => {
    for (const typed of ['Ada@Example.com', ' ada@example.com ', 'ＡＤＡ＠example.com', 'ADA@EXAMPLE.COM'])
      expect(toLogin(typed)).toBe('ada@example.com');
  });

  it('must have 3 to 254 visible characters', () => {
    for (const wrong of ['', 'ab', ' ab ', 'a b c', 'a\u200Bbc', 'a\nbc', 'a'.repeat(255)])
      expect(() => toLogin(wrong)).toThrow(/3 to 254/);
    expect(toLogin('a'.repeat(254))).toHaveLength(254);
  });

  it('does not change when normalised twice', () => {
    fc.assert(
      fc.property(fc.string({ unit: codePoint }), (typed) => {
        const login = normalizeLogin(typed);
        expect(normalizeLogin(login)).toBe(login);
        expect(login).toBe(login.normalize('NFKC'));
      }),
      { numRuns: 2000 },
    );
  });

  it('follows different rules than a name, which must have 1 to 200 characters and no control characters', () => {
    expect(toPersonName(' Ada L. ')).toBe('Ada L.');
    for (const wrong of ['', '  ', 'a\nb', 'a\u202Eb', 'a'.repeat(201)])
      expect(() => toPersonName(wrong)).toThrow(/1 to 200/);
  });
});

describe('the return path after sign-in', () => {
  it.each([
    ['/projects/p/keys?environment=p-production', '/projects/p/keys?environment=p-production'],
    ['/', '/'],
    ['//evil.example/x', '/'],
    ['/\\evil.example', '/'],
    ['/\t/evil.example', '/'],
    ['/x/..//evil.example', '/'],
    ['https://evil.example/', '/'],
    ['javascript:alert(1)', '/'],
    ['projects', '/'],
    ['/a\r\nset-cookie: x', '/'],
    ['', '/'],
    [undefined, '/'],
    [null, '/'],
  ])('is always a portal path: %s', (wanted, path) => {
    expect(toReturnPath(wanted)).toBe(path);
  });

  it('never leads to another origin', () => {
    const pieces = ['/', '\\', '.', '..', '@', ':', 'evil.example', 'a', '%2f', '%5c', '\t', '\n', '?', '#'];
    const piece = fc.constantFrom(...pieces);
    const wanted = fc.oneof(
      fc.array(piece, { maxLength: 8 }).map((drawn) => drawn.join('')),
      fc.string(),
      fc.webUrl(),
    );
    fc.assert(
      fc.property(wanted, (text) => {
        const path = toReturnPath(text);
        expect(new URL(path, 'https://portal.example').origin).toBe('https://portal.example');
        expect(path).toMatch(/^\/(?![/\\])/);
        expect(toReturnPath(path)).toBe(path);
      }),
      { numRuns: 5000 },
    );
  });
});
