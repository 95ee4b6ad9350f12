/**
 * What a seed came to, by name, such as `{ kills: 2, 'away s': 6.1 }`.
 *
 * A name that ends with a unit (` ms`, ` s`, ` MiB`) is a length or a size, of which seeds tell the greatest. Every
 * other is a count of what struck, which seeds add up: a count of 0 says that this part of the fault did not happen.
 * What a seed did not draw is not named at all.
 */
export type Reached = Readonly<Record<string, number>>;

const MEASURE = /^(?<what>.+) (?<unit>ms|s|MiB)$/;

/** False for a seed in which the fault, or a part of it, never struck: it has tried nothing. */
export function hasStruck(reached: Reached): boolean {
  const counts = Object.entries(reached).filter(([name]) => !MEASURE.test(name));
  return counts.length > 0 && counts.every(([, count]) => count > 0);
}

/** Both seeds together. */
export function addReached(one: Reached, other: Reached): Reached {
  const sum = { ...one };
  for (const [name, value] of Object.entries(other)) {
    const before = sum[name];
    sum[name] = before === undefined ? value : MEASURE.test(name) ? Math.max(before, value) : before + value;
  }
  return sum;
}

/** Counts what happened, by its name. */
export function tally(names: readonly string[]): Reached {
  return names.reduce<Reached>((sum, name) => addReached(sum, { [name]: 1 }), {});
}

/** Milliseconds in seconds, to the tenth, which is precise enough. */
export const toSeconds = (ms: number): number => Math.round(ms / 100) / 10;

/** One cell of a table. */
export function toWords(reached: Reached): string {
  const words = Object.entries(reached).map(([name, value]) => {
    const { what, unit } = MEASURE.exec(name)?.groups ?? {};
    return what === undefined ? `${value} ${name}` : `${what} up to ${value} ${unit}`;
  });
  return words.join('; ');
}
