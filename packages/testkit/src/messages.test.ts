import fc from 'fast-check';
import { expect, it } from 'vitest';
import { codePoint } from './messages.ts';

it('codePoint generates and shrinks single code points, never surrogates', () => {
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

it('codePoint covers both ends of the code space and both sides of the surrogate range', () => {
  const points = fc.sample(codePoint, 5_000).map((text) => text.codePointAt(0)!);
  for (const [min, max] of [
    [0, 0x80],
    [0x81, 0xd800],
    [0xe000, 0x10000],
    [0x10fff1, 0x110000],
  ] as const)
    expect([min, points.some((point) => point >= min && point < max)]).toEqual([min, true]);
});
