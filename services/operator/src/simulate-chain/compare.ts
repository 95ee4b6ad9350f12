const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;
const show = (value: unknown) => (value === undefined ? 'nothing' : JSON.stringify(value));

/** Differences between two JSON values by member: `details.amount: "5" instead of "6"`. */
export function describeDifferences(expected: unknown, shown: unknown, path = ''): string[] {
  const isPair = isObject(expected) && isObject(shown) && Array.isArray(expected) === Array.isArray(shown);
  if (!isPair) return Object.is(expected, shown) ? [] : [`${path}: ${show(shown)} instead of ${show(expected)}`];
  const names = new Set([...Object.keys(expected), ...Object.keys(shown)]);
  return [...names].flatMap((name) =>
    describeDifferences(expected[name], shown[name], path === '' ? name : `${path}.${name}`),
  );
}
