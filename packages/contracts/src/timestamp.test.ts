import fc from 'fast-check';
import { expect, it } from 'vitest';
import { parseTimestamp, parseTimestampMicros, toTimestamp } from './texts.ts';

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
  ['a comma as decimal sign', '2026-11-21T08:13:36,5Z'],
  ['a year of five digits', '12026-11-21T08:13:36Z'],
  ['text around it', ' 2026-11-21T08:13:36Z'],
  ['a line break behind it', '2026-11-21T08:13:36Z\n'],
  ['a number of milliseconds', '1790000000000'],
  ['nothing', ''],
])('parseTimestamp refuses %s', (_, text) => {
  expect(parseTimestamp(text)).toBeNaN();
});

it('parseTimestamp reads back every time that Date writes', () => {
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
])('times to the microsecond are read from %s', (text, micros) => {
  expect(parseTimestampMicros(text)).toBe(Date.UTC(2026, 10, 21, 8, 13, 36) * 1_000 + micros);
});

it('times to the microsecond are not read from what is no timestamp', () => {
  expect(parseTimestampMicros('2026-02-30T00:00:00.000001Z')).toBeNaN();
});

it('times to the microsecond are read back as they were written, with six digits always', () => {
  fc.assert(
    fc.property(fc.maxSafeNat(), (micros) => {
      const text = toTimestamp(micros);
      expect(text).toMatch(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$/);
      expect(parseTimestampMicros(text)).toBe(micros);
    }),
  );
});
