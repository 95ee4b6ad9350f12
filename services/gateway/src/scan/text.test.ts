import { expect, it } from 'vitest';
import { isVisibleAt, isVisibleBefore } from './text.ts';

/** Yields every character except surrogates, which are not valid in UTF-8. */
function* characters(): Generator<string> {
  for (let point = 0; point <= 0x10ffff; point++) {
    if (point < 0xd800 || point > 0xdfff) yield String.fromCodePoint(point);
  }
}

it('isVisibleAt and isVisibleBefore return false for every character that trimming removes', () => {
  for (const character of characters()) {
    if (character.trim() !== '') continue;
    const bytes = Buffer.from(`x${character}`);
    if (isVisibleAt(bytes, 1) || isVisibleBefore(bytes, bytes.length)) expect.fail(JSON.stringify(character));
  }
});

it.each(['a', '0', '-', 'é', 'Ж', 'か', '漢', '가', '😀'])(
  'isVisibleAt and isVisibleBefore return true for %s',
  (character) => {
    const bytes = Buffer.from(`x${character}`);
    expect(isVisibleAt(bytes, 1)).toBe(true);
    expect(isVisibleBefore(bytes, bytes.length)).toBe(true);
  },
);

it('isVisibleAt returns false for a backslash, because the escape may be a space', () => {
  expect(isVisibleAt(Buffer.from('\\u0020'), 0)).toBe(false);
});
