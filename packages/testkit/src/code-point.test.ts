import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { codePoint } from './code-point.ts';

describe('a random code point', () => {
  it('is one of those that fast-check calls binary, and shrinks from any of them, and from nothing else', () => {
    fc.assert(
      fc.property(codePoint, (text) => {
        expect([...text]).toEqual([text]);
        expect([text.isWellFormed(), codePoint.canShrinkWithoutContext(text)]).toEqual([true, true]);
      }),
    );
    for (const text of ['\u0000', '\ud7ff', '\ue000', '\u{10ffff}'])
      expect([text, codePoint.canShrinkWithoutContext(text)]).toEqual([text, true]);
    for (const other of ['', 'ab', '\ud800', '\udfff', 7])
      expect([other, codePoint.canShrinkWithoutContext(other)]).toEqual([other, false]);
  });

  it('reaches both ends, and both sides of the surrogates', () => {
    const found = new Set(fc.sample(codePoint, 5_000));
    const points = [...found].map((text) => text.codePointAt(0)!);
    expect(points.some((point) => point < 0x80)).toBe(true);
    expect(points.some((point) => point >= 0xe000 && point < 0x10000)).toBe(true);
    expect(points.some((point) => point > 0x10fff0)).toBe(true);
    expect(points.some((point) => point > 0x80 && point < 0xd800)).toBe(true);
  });
});
