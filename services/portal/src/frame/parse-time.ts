const TIME = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?$/;

/**
 * Reads a time as forms take it: `2026-11-01 10:00`, in UTC, with seconds or without.
 * @returns epoch milliseconds; null for '', undefined for what is no time
 */
export function parseTime(text: string): number | null | undefined {
  if (text === '') return null;
  const ms = TIME.test(text) ? Date.parse(`${text.replace(' ', 'T')}Z`) : Number.NaN;
  return Number.isNaN(ms) ? undefined : ms;
}

/** What a form says of a time that is none. */
export const INVALID_TIME = 'Give a time as 2026-11-01 10:00, in UTC.';
