import { describe, expect, it } from 'vitest';
import { toOverrideVersion } from './record-rows.ts';

const versionOf = (generation: number, offset: number, step: number) => toOverrideVersion({ generation, offset, step });

describe('the version of an override', () => {
  it('grows with generation, then offset, then step, and fits 64 bits', () => {
    const versions = [
      versionOf(0, 0, 0),
      versionOf(0, 0, 255),
      versionOf(0, 1, 0),
      versionOf(0, 2 ** 48 - 1, 255),
      versionOf(1, 0, 0),
      versionOf(255, 2 ** 48 - 1, 255),
    ];
    expect(versions).toEqual([...versions].sort((a, b) => (a < b ? -1 : 1)));
    expect(new Set(versions).size).toBe(versions.length);
    expect(versions.at(-1)).toBe(2n ** 64n - 1n);
  });
  it.each([
    [256, 0, 0],
    [0, 2 ** 48, 0],
    [0, 0, 256],
    [0, -1, 0],
  ])('refuses what does not fit: %s %s %s', (generation, offset, step) => {
    expect(() => versionOf(generation, offset, step)).toThrow(RangeError);
  });
});
