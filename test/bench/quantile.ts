/** Returns the smallest value that at least the share `q` of the values does not exceed; NaN if there are no values. */
export function quantileOf(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * q) - 1)] ?? Number.NaN;
}

export const medianOf = (values: readonly number[]): number => quantileOf(values, 0.5);

export function mediansOf<K extends string>(values: readonly Readonly<Record<K, number>>[]): Record<K, number> {
  const names = Object.keys(values[0] ?? {}) as K[];
  return Object.fromEntries(names.map((name) => [name, medianOf(values.map((each) => each[name]))])) as Record<
    K,
    number
  >;
}
