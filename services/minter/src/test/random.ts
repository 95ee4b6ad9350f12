/** Random numbers that a seed determines. */
export interface Random {
  /** Below 1. */
  next(): number;
  /** From 0 to below `below`. */
  integer(below: number): number;
  /** True with this probability. */
  chance(part: number): boolean;
  pick<T>(choices: readonly T[]): T;
}

export function createRandom(seed: number): Random {
  let state = (seed * 0x9e3779b9) >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const integer = (below: number) => Math.floor(next() * below);
  return { next, integer, chance: (part) => next() < part, pick: (choices) => choices[integer(choices.length)]! };
}
