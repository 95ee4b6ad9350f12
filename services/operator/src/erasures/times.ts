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

const LABEL_WIDTH = 12;

/** A line with its label. */
export const toLine = (label: string, text: string): string => `${label.padEnd(LABEL_WIDTH)}${text}`;

/** Lines with one label, shown before the first. */
export const toLinesOf = (label: string, texts: readonly string[]): string[] =>
  texts.map((text, index) => toLine(index === 0 ? label : '', text));
