/** Both bounds inclusive, epoch milliseconds. */
export interface TimeWindow {
  fromMs: number;
  toMs: number;
}

/** RFC 3339, section 5.6, with 0 to 9 fractional digits and no second 60: specification, part A, "RFC 3339 details". */
const RFC_3339 =
  /^(\d{4}-\d{2}-(\d{2}))[Tt]([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))$/;

const MINUTE_MS = 60_000;

/**
 * Reads an RFC 3339 timestamp.
 * @returns epoch milliseconds, finer digits cut off (so always the floor); NaN when the text is no such timestamp.
 */
export function parseTimestamp(text: string): number {
  const match = RFC_3339.exec(text);
  if (match === null) return Number.NaN;
  const [, date = '', day, hour = '', minute = '', second = '', fraction = '', sign, offsetHour, offsetMinute] = match;
  const localMs = Date.parse(`${date}T${hour}:${minute}:${second}.${fraction.slice(0, 3).padEnd(3, '0')}Z`);
  // Date.parse lets 30 February run over into March: a date that exists keeps its day.
  if (Number.isNaN(localMs) || new Date(localMs).getUTCDate() !== Number(day)) return Number.NaN;
  if (sign === undefined) return localMs;
  const offsetMs = (Number(offsetHour) * 60 + Number(offsetMinute)) * MINUTE_MS;
  return sign === '+' ? localMs - offsetMs : localMs + offsetMs;
}
