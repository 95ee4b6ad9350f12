/**
 * The results of a seed by name, such as `{ kills: 2, 'away s': 6.1 }`. Of names with a unit (` ms`, ` s`, ` MiB`) the
 * greatest is reported. All others are counts and added up; 0 means that this part of the fault did not take effect.
 */
export type Reached = Readonly<Record<string, number>>;

const MEASURE = /^(?<what>.+) (?<unit>ms|s|MiB)$/;

/** False when the fault, or a part, did not take effect. Such a seed has tested nothing. */
export function hasStruck(reached: Reached): boolean {
  const counts = Object.entries(reached).filter(([name]) => !MEASURE.test(name));
  return counts.length > 0 && counts.every(([, count]) => count > 0);
}

export function addReached(one: Reached, other: Reached): Reached {
  const sum = { ...one };
  for (const [name, value] of Object.entries(other)) {
    const before = sum[name];
    sum[name] = before === undefined ? value : MEASURE.test(name) ? Math.max(before, value) : before + value;
  }
  return sum;
}

export function tally(names: readonly string[]): Reached {
  return names.reduce<Reached>((sum, name) => addReached(sum, { [name]: 1 }), {});
}

export const toSeconds = (ms: number): number => Math.round(ms / 100) / 10;

export function toText(reached: Reached): string {
  const texts = Object.entries(reached).map(([name, value]) => {
    const { what, unit } = MEASURE.exec(name)?.groups ?? {};
    return what === undefined ? `${value} ${name}` : `${what} up to ${value} ${unit}`;
  });
  return texts.join('; ');
}
