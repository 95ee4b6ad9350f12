const UNITS: readonly [name: string, ms: number][] = [
  ['d', 24 * 60 * 60 * 1000],
  ['h', 60 * 60 * 1000],
  ['min', 60 * 1000],
  ['s', 1000],
];

/** A duration in the largest unit of which there are at least two: `90 s`, `47 h`. */
export function toSpanText(ms: number): string {
  const [name, unit] = UNITS.find(([, each]) => ms >= 2 * each) ?? ['s', 1000];
  return `${Math.max(0, Math.floor(ms / unit))} ${name}`;
}

/** Distance of a moment from now. */
export function toAgeText(atMs: number, nowMs: number): string {
  return atMs <= nowMs ? `${toSpanText(nowMs - atMs)} ago` : `in ${toSpanText(atMs - nowMs)}`;
}
