import { createHash } from 'node:crypto';

/** Random values that depend only on the seed. Not suitable for secrets. */
export interface Random {
  /** Returns a number in [0, 1). */
  next(): number;
  chance(probability: number): boolean;
  integer(min: number, max: number): number;
  pick<T>(items: readonly T[]): T;
}

/** Implements mulberry32, seeded with a hash of `name`. */
export function createRandom(name: string): Random {
  let state = createHash('sha256').update(name).digest().readUInt32LE(0);
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const integer = (min: number, max: number) => min + Math.floor(next() * (max - min + 1));
  return {
    next,
    integer,
    chance: (probability) => next() < probability,
    pick: (items) => items[integer(0, items.length - 1)]!,
  };
}

/** Returns a version 8 UUID (RFC 9562) that depends only on `name`. */
export function toUuid(name: string): string {
  const bytes = createHash('sha256').update(name).digest().subarray(0, 16);
  bytes[6] = (bytes[6]! & 0x0f) | 0x80;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const digits = bytes.toString('hex');
  return [digits.slice(0, 8), digits.slice(8, 12), digits.slice(12, 16), digits.slice(16, 20), digits.slice(20)].join(
    '-',
  );
}
