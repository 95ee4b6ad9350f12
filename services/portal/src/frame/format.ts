/** Formats numbers and durations as text. */
import { toNumberText } from '@playline/contracts';

/** Formats a number with an optional unit. */
export const number = (value: number, unit = ''): string =>
  unit === '' ? toNumberText(value) : `${toNumberText(value)}\u00a0${unit}`;

const DURATION_UNITS: readonly (readonly [name: string, ms: number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
];

/** Formats a duration in the largest unit in which its value is at least 2. Negative durations are shown as 0. */
export function duration(ms: number): string {
  const [name, unit] = DURATION_UNITS.find(([, each]) => ms >= 2 * each) ?? (['s', 1000] as const);
  return number(Math.max(0, Math.round(ms / unit)), name);
}

export function percentage(part: number, whole: number): string {
  return whole === 0 ? '–' : `${((100 * part) / whole).toFixed(1)}\u00a0%`;
}
