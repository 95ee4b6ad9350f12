import { BACKSLASH, SPACE } from './json.ts';

/** Lead bytes of the characters beyond ASCII that count as white space: U+00A0, U+1680, U+2000 to U+3000, U+FEFF. */
const SPACE_LEADS = new Uint8Array(256);
for (const lead of [0xc2, 0xe1, 0xe2, 0xe3, 0xef]) SPACE_LEADS[lead] = 1;

/** Kana and CJK punctuation share a lead byte with U+3000, whose second byte is 0x80. */
const KANA_LEAD = 0xe3;
const IDEOGRAPHIC_SPACE_SECOND = 0x80;

/** True when the character at `at` is certainly neither white space nor an escape. */
export function isVisibleAt(bytes: Uint8Array, at: number): boolean {
  const byte = bytes[at]!;
  if (byte < 0x80) return byte > SPACE && byte !== BACKSLASH;
  return SPACE_LEADS[byte] === 0 || (byte === KANA_LEAD && bytes[at + 1] !== IDEOGRAPHIC_SPACE_SECOND);
}

/** True when the last character of the string that ends before `end` is certainly not white space. */
export function endsVisible(bytes: Uint8Array, end: number): boolean {
  let at = end - 1;
  // Back over the continuation bytes of the last character.
  while ((bytes[at]! & 0xc0) === 0x80) at--;
  return isVisibleAt(bytes, at);
}
