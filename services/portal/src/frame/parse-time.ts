const TIME = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?$/;

/** Parses a UTC time from a form. @returns epoch milliseconds; null for '', undefined for an invalid time */
export function parseTime(text: string): number | null | undefined {
  if (text === '') return null;
  const ms = TIME.test(text) ? Date.parse(`${text.replace(' ', 'T')}Z`) : Number.NaN;
  return Number.isNaN(ms) ? undefined : ms;
}

export const INVALID_TIME = 'Enter a time such as 2026-11-01 10:00, in UTC.';
export const INVALID_RANGE = '"Until" is before "From".';
