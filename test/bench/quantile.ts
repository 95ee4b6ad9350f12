/** @param q between 0 and 1 @returns NaN if there are no values */
export function quantileOf(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN;
}

export const medianOf = (values: readonly number[]): number => quantileOf(values, 0.5);

export function mediansOf<K extends string>(values: readonly Readonly<Record<K, number>>[]): Record<K, number> {
  const names = Object.keys(values[0] ?? {}) as K[];
  return Object.fromEntries(names.map((name) => [name, medianOf(values.map((each) => each[name]))])) as Record<
    K,
    number
  >;
}
