import fc from 'fast-check';
import { expect, it } from 'vitest';
import { parseAddress, parseTimestamp, parseTimestampMicros, toTimestamp } from './texts.ts';

/** The mixed-case examples from EIP-55. */
const CHECKSUMMED = [
  '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
  '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359',
  '0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB',
  '0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb',
];

it('parseAddress accepts lower case, upper case and a valid EIP-55 checksum, and returns lower case', () => {
  for (const text of CHECKSUMMED) {
    const lower = text.toLowerCase();
    for (const form of [text, lower, `0x${text.slice(2).toUpperCase()}`]) expect(parseAddress(form)).toBe(lower);
  }
  expect(parseAddress(`0x${'0'.repeat(40)}`)).toBe(`0x${'0'.repeat(40)}`);
});

it('parseAddress refuses a mixed-case address if the case or value of any digit is wrong', () => {
  for (const text of CHECKSUMMED)
    for (const [at, digit] of [...text].entries()) {
      if (at < 2) continue;
      const lower = digit.toLowerCase();
      const swapped = digit === lower ? digit.toUpperCase() : lower;
      const replacements = [swapped, digit === '1' ? '2' : '1'].filter((replacement) => replacement !== digit);
      for (const replacement of replacements)
        expect(parseAddress(text.slice(0, at) + replacement + text.slice(at + 1)), replacement).toBeNull();
    }
  expect(parseAddress('0xF39fd6e51aad88f6f4ce6ab8827279cfffb92266')).toBeNull();
});

it.each(['', '0x', `0X${'ab'.repeat(20)}`, 'ab'.repeat(20), `0x${'ab'.repeat(20)}c`, ` 0x${'ab'.repeat(20)}`])(
  'parseAddress refuses %j, which is not 0x and 40 hexadecimal digits',
  (text) => {
    expect(parseAddress(text)).toBeNull();
  },
);

it.each([
  ['2026-11-21T08:13:36Z', Date.UTC(2026, 10, 21, 8, 13, 36)],
  ['2026-11-21t08:13:36z', Date.UTC(2026, 10, 21, 8, 13, 36)],
  ['2026-11-21T08:13:36.2Z', Date.UTC(2026, 10, 21, 8, 13, 36, 200)],
  ['2026-11-21T08:13:36.250Z', Date.UTC(2026, 10, 21, 8, 13, 36, 250)],
  ['2026-11-21T08:13:36.2509999Z', Date.UTC(2026, 10, 21, 8, 13, 36, 250)],
  ['2026-11-21T08:13:36.999999999Z', Date.UTC(2026, 10, 21, 8, 13, 36, 999)],
  ['2026-11-21T08:13:36+02:00', Date.UTC(2026, 10, 21, 6, 13, 36)],
  ['2026-11-21T08:13:36-09:30', Date.UTC(2026, 10, 21, 17, 43, 36)],
  ['2026-11-21T08:13:36-00:00', Date.UTC(2026, 10, 21, 8, 13, 36)],
  ['2028-02-29T00:00:00Z', Date.UTC(2028, 1, 29)],
  ['1969-12-31T23:59:59.9999Z', -1],
  ['0000-02-29T00:00:00Z', Date.parse('0000-02-29T00:00:00Z')],
])('parseTimestamp reads %s', (text, expected) => {
  expect(parseTimestamp(text)).toBe(expected);
});

it.each([
  ['a date that does not exist', '2026-02-30T00:00:00Z'],
  ['29 February of a common year', '2027-02-29T00:00:00Z'],
  ['31 November', '2026-11-31T00:00:00Z'],
  ['month 13', '2026-13-01T00:00:00Z'],
  ['month 0', '2026-00-01T00:00:00Z'],
  ['day 0', '2026-01-00T00:00:00Z'],
  ['hour 24', '2026-01-01T24:00:00Z'],
  ['minute 60', '2026-01-01T00:60:00Z'],
  ['second 60', '2026-06-30T23:59:60Z'],
  ['a space instead of T', '2026-11-21 08:13:36Z'],
  ['no offset', '2026-11-21T08:13:36'],
  ['an offset without a colon', '2026-11-21T08:13:36+0200'],
  ['an offset of 24 hours', '2026-11-21T08:13:36+24:00'],
  ['a point without digits', '2026-11-21T08:13:36.Z'],
  ['ten fractional digits', '2026-11-21T08:13:36.0123456789Z'],
  ['a comma as the decimal separator', '2026-11-21T08:13:36,5Z'],
  ['a five-digit year', '12026-11-21T08:13:36Z'],
  ['leading white space', ' 2026-11-21T08:13:36Z'],
  ['a trailing line break', '2026-11-21T08:13:36Z\n'],
  ['epoch milliseconds', '1790000000000'],
  ['an empty string', ''],
])('parseTimestamp refuses %s', (_, text) => {
  expect(parseTimestamp(text)).toBeNaN();
});

it('parseTimestamp parses every timestamp that Date.toISOString returns', () => {
  fc.assert(
    fc.property(fc.date({ min: new Date('0001-01-01'), max: new Date('9999-12-31'), noInvalidDate: true }), (date) => {
      expect(parseTimestamp(date.toISOString())).toBe(date.getTime());
    }),
  );
});

it.each([
  ['2026-11-21T08:13:36Z', 0],
  ['2026-11-21T08:13:36.2Z', 200_000],
  ['2026-11-21T08:13:36.25Z', 250_000],
  ['2026-11-21T08:13:36.0012Z', 1_200],
  ['2026-11-21T08:13:36.000001Z', 1],
  ['2026-11-21T08:13:36.999999999Z', 999_999],
  ['2026-11-21T10:13:36.000123+02:00', 123],
])('parseTimestampMicros reads %s', (text, micros) => {
  expect(parseTimestampMicros(text)).toBe(Date.UTC(2026, 10, 21, 8, 13, 36) * 1_000 + micros);
});

it('parseTimestampMicros returns NaN for an invalid timestamp', () => {
  expect(parseTimestampMicros('2026-02-30T00:00:00.000001Z')).toBeNaN();
});

it('toTimestamp always writes six fractional digits, and parseTimestampMicros returns the same time', () => {
  fc.assert(
    fc.property(fc.maxSafeNat(), (micros) => {
      const text = toTimestamp(micros);
      expect(text).toMatch(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$/);
      expect(parseTimestampMicros(text)).toBe(micros);
    }),
  );
});
