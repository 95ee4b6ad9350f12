/** A seeded random number generator. Not suitable for secrets. */
export interface Random {
  /** Returns a number in [0, 1). */
  next(): number;
  below(limit: number): number;
  integer(min: number, max: number): number;
  chance(probability: number): boolean;
  pick<T>(items: readonly T[]): T;
  shuffle<T>(items: readonly T[]): T[];
  hex(digits: number): string;
}

/** Implements sfc32, which has 128 bits of state and passes PractRand. */
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
  // Discard the first 12 outputs, which are correlated with the seed, as recommended by the author of sfc32.
  for (let round = 0; round < 12; round++) bits();
  const next = () => bits() / 2 ** 32;
  const below = (limit: number) => Math.floor(next() * limit);
  const integer = (min: number, max: number) => min + below(max - min + 1);
  return {
    next,
    below,
    integer,
    chance: (probability) => next() < probability,
    pick: (items) => items[below(items.length)]!,
    shuffle: (items) => {
      const order = [...items];
      for (let last = order.length - 1; last > 0; last--) {
        const index = integer(0, last);
        [order[last], order[index]] = [order[index]!, order[last]!];
      }
      return order;
    },
    hex: (digits) => Array.from({ length: digits }, () => integer(0, 15).toString(16)).join(''),
  };
}

/** Returns a function that draws items in random order, and draws every item once before any item repeats. */
export function createDeck<T>(random: Random, items: readonly T[]): () => T {
  let remaining: T[] = [];
  return () => {
    if (remaining.length === 0) remaining = random.shuffle(items);
    return remaining.pop()!;
  };
}
