/** Both bounds inclusive, epoch milliseconds. */
export interface TimeWindow {
  fromMs: number;
  toMs: number;
}

/** RFC 3339, section 5.6, with 0 to 9 fractional digits and no second 60: contract, "RFC 3339 details". */
const RFC_3339 =
  /^(\d{4}-\d{2}-(\d{2}))[Tt]([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))$/;

const MINUTE_MS = 60_000;

/**
 * Reads an RFC 3339 timestamp.
 * @returns epoch milliseconds, rounded down; NaN when the text is no such timestamp.
 */
export function parseTimestamp(text: string): number {
  const match = RFC_3339.exec(text);
  if (match === null) return Number.NaN;
  const [, date = '', day, hour = '', minute = '', second = '', fraction = '', sign, offsetHour, offsetMinute] = match;
  const localMs = Date.parse(`${date}T${hour}:${minute}:${second}.${fraction.slice(0, 3).padEnd(3, '0')}Z`);
  // Date.parse turns 30 February into 1 or 2 March, so compare the day.
  if (Number.isNaN(localMs) || new Date(localMs).getUTCDate() !== Number(day)) return Number.NaN;
  if (sign === undefined) return localMs;
  const offsetMs = (Number(offsetHour) * 60 + Number(offsetMinute)) * MINUTE_MS;
  return sign === '+' ? localMs - offsetMs : localMs + offsetMs;
}

/** The digits of a fraction between milliseconds and microseconds. */
const MICROSECOND_DIGITS = /\.\d{3}(\d{1,3})/;

/**
 * Reads an RFC 3339 timestamp to the microsecond.
 * @returns epoch microseconds, rounded down, exact below 2^53; NaN when the text is no such timestamp.
 */
export function parseTimestampMicros(text: string): number {
  const [, digits = ''] = MICROSECOND_DIGITS.exec(text) ?? [];
  return parseTimestamp(text) * 1_000 + Number(digits.padEnd(3, '0'));
}

/** ISO 8601 in UTC with six fractional digits. @param micros epoch microseconds, a whole number from 0 to 2^53 - 1 */
export function toTimestamp(micros: number): string {
  const rest = micros % 1_000;
  return `${new Date((micros - rest) / 1_000).toISOString().slice(0, -1)}${String(rest).padStart(3, '0')}Z`;
}
