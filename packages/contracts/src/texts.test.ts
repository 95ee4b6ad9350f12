import { expect, it } from 'vitest';
import { parseAddress } from './texts.ts';

/** The examples of EIP-55 in mixed case. */
const CHECKSUMMED = [
  '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
  '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359',
  '0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB',
  '0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb',
];

it('parseAddress accepts lower case, upper case and a valid EIP-55 checksum, and returns lower case', () => {
  for (const text of CHECKSUMMED) {
    const lower = text.toLowerCase();
    for (const spelling of [text, lower, `0x${text.slice(2).toUpperCase()}`])
      expect(parseAddress(spelling)).toBe(lower);
  }
  expect(parseAddress(`0x${'0'.repeat(40)}`)).toBe(`0x${'0'.repeat(40)}`);
});

it('parseAddress refuses a mixed-case address when the case of any letter or any digit is wrong', () => {
  for (const text of CHECKSUMMED)
    for (const [at, digit] of [...text].entries()) {
      if (at < 2) continue;
      const lower = digit.toLowerCase();
      const swapped = digit === lower ? digit.toUpperCase() : lower;
      const others = [swapped, digit === '1' ? '2' : '1'].filter((other) => other !== digit);
      for (const other of others)
        expect([other, parseAddress(text.slice(0, at) + other + text.slice(at + 1))]).toEqual([other, null]);
    }
  expect(parseAddress('0xF39fd6e51aad88f6f4ce6ab8827279cfffb92266')).toBeNull();
});

it.each(['', '0x', `0X${'ab'.repeat(20)}`, 'ab'.repeat(20), `0x${'ab'.repeat(20)}c`, ` 0x${'ab'.repeat(20)}`])(
  'parseAddress refuses %j, which is not 0x and 40 hexadecimal digits',
  (text) => {
    expect(parseAddress(text)).toBeNull();
  },
);
