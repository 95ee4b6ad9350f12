import { expect, it } from 'vitest';
import { endsVisible, isVisibleAt } from './text.ts';

/** Every character but surrogates, which no UTF-8 text holds. */
function* characters(): Generator<string> {
  for (let point = 0; point <= 0x10ffff; point++) {
    if (point < 0xd800 || point > 0xdfff) yield String.fromCodePoint(point);
  }
}

it('isVisibleAt and endsVisible treat no character as visible that trimming removes', () => {
  for (const character of characters()) {
    if (character.trim() !== '') continue;
    const bytes = Buffer.from(`x${character}`);
    if (isVisibleAt(bytes, 1) || endsVisible(bytes, bytes.length)) expect.fail(JSON.stringify(character));
  }
});

it.each(['a', '0', '-', 'é', 'Ж', 'か', '漢', '가', '😀'])(
  'isVisibleAt and endsVisible take %s for visible',
  (character) => {
    const bytes = Buffer.from(`x${character}`);
    expect(isVisibleAt(bytes, 1)).toBe(true);
    expect(endsVisible(bytes, bytes.length)).toBe(true);
  },
);

it('isVisibleAt and endsVisible treat a backslash as uncertain, because an escape may be a space', () => {
  expect(isVisibleAt(Buffer.from('\\u0020'), 0)).toBe(false);
});
