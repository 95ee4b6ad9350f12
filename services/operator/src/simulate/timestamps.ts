import type { Random } from './random.ts';

/** How a client writes a time: number of fraction digits, and `Z` or an offset in minutes. */
export interface TimeStyle {
  readonly digits: number;
  readonly offsetMinutes: number | 'Z';
}

/** Formats a time by RFC 3339; digits beyond milliseconds are random, as from a finer clock. */
export function formatTimestamp(timeMs: number, style: TimeStyle, random: Random): string {
  const shift = style.offsetMinutes === 'Z' ? 0 : style.offsetMinutes;
  const iso = new Date(timeMs + shift * 60_000).toISOString();
  const seconds = iso.slice(0, 19);
  const finer = Array.from({ length: 6 }, () => random.integer(0, 9)).join('');
  const fraction = `${iso.slice(20, 23)}${finer}`.slice(0, style.digits);
  return `${seconds}${style.digits === 0 ? '' : `.${fraction}`}${formatOffset(style.offsetMinutes)}`;
}

function formatOffset(offset: TimeStyle['offsetMinutes']): string {
  if (offset === 'Z') return 'Z';
  const minutes = Math.abs(offset);
  const two = (value: number) => String(value).padStart(2, '0');
  return `${offset < 0 ? '-' : '+'}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}

const DAY_MS = 24 * 60 * 60 * 1000;
const HOUR_MS = 60 * 60 * 1000;
/** A day within the 30 that are accepted, so that a batch resent for minutes is still accepted. */
const LATE_MAX_MS = 29 * DAY_MS;
/** An hour within the 24 that are accepted. */
const AHEAD_MAX_MS = 23 * HOUR_MS;

/**
 * How long before now (negative: after) the events of one batch happened: most just now, some from a queue that was
 * offline for hours or weeks, a few from a device whose clock is ahead.
 */
export function pickDelayMs(random: Random): number {
  const draw = random.next();
  if (draw < 0.88) return random.integer(0, 30_000);
  if (draw < 0.95) return random.integer(HOUR_MS, DAY_MS);
  if (draw < 0.99) return random.integer(DAY_MS, LATE_MAX_MS);
  return -random.integer(HOUR_MS, AHEAD_MAX_MS);
}
