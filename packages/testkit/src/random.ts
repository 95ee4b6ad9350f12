/** Random choices from a seed. Not for secrets. */
export interface Random {
  /** A number in [0, 1). */
  next(): number;
  below(limit: number): number;
  integer(min: number, max: number): number;
  chance(share: number): boolean;
  pick<T>(items: readonly T[]): T;
  shuffle<T>(items: readonly T[]): T[];
  hex(digits: number): string;
}

/** sfc32: 128 bits of state, passes PractRand, no dependency. */
export function createRandom(seed: number): Random {
  let [a, b, c, counter] = [seed | 0, Math.imul(seed, 0x9e3779b9) | 0, 0x85ebca6b | 0, 1];
  const bits = (): number => {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return sum >>> 0;
  };
  // As its author recommends, discards the first 12 outputs, which visibly depend on the seed.
  for (let round = 0; round < 12; round++) bits();
  const next = () => bits() / 2 ** 32;
  const below = (limit: number) => Math.floor(next() * limit);
  const integer = (min: number, max: number) => min + below(max - min + 1);
  return {
    next,
    below,
    integer,
    chance: (share) => next() < share,
    pick: (items) => items[below(items.length)]!,
    shuffle: (items) => {
      const order = [...items];
      for (let last = order.length - 1; last > 0; last--) {
        const other = integer(0, last);
        [order[last], order[other]] = [order[other]!, order[last]!];
      }
      return order;
    },
    hex: (digits) => Array.from({ length: digits }, () => integer(0, 15).toString(16)).join(''),
  };
}

/** Draws every item once, in random order, before any item repeats. */
export function createDeck<T>(random: Random, items: readonly T[]): () => T {
  let rest: T[] = [];
  return () => {
    if (rest.length === 0) rest = random.shuffle(items);
    return rest.pop()!;
  };
}
