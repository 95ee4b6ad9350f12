import fc from 'fast-check';
import { expect, it } from 'vitest';
import { RangeSize } from './range-size.ts';

function read(size: RangeSize, blocksMax: number): boolean {
  size.request(size.blocks);
  if (size.blocks <= blocksMax) size.recordSuccess(size.blocks);
  else if (size.isSmallest || !size.recordTimeout()) return false;
  else size.halve();
  return true;
}

it('the range size is halved after two timeouts, and then after each further timeout', () => {
  const size = new RangeSize(1_000, () => 0);
  expect(read(size, 100)).toBe(false);
  expect(size.blocks).toBe(1_000);
  for (const blocks of [500, 250, 125, 62]) {
    read(size, 100);
    expect(size.blocks).toBe(blocks);
  }
});

it('a range size that was too large is tried again after ten minutes', () => {
  const clock = { nowMs: 0 };
  const size = new RangeSize(1_000, () => clock.nowMs);
  for (let request = 0; request < 100; request++) read(size, 100);
  expect(size.blocks).toBe(62);
  clock.nowMs = 600_000;
  read(size, 100);
  expect(size.blocks).toBe(78);
});

it('a single timeout does not halve the range size', () => {
  const size = new RangeSize(64, () => 0);
  for (let attempt = 0; attempt < 20; attempt++) {
    expect(size.recordTimeout()).toBe(false);
    size.recordSuccess(64);
  }
  expect(size.blocks).toBe(64);
});

it("a node's range size is found with a logarithmic number of timeouts", () => {
  const property = fc.property(
    fc.integer({ min: 1, max: 100_000 }),
    fc.integer({ min: 1, max: 100_000 }),
    (most, blocksMax) => {
      const size = new RangeSize(most, () => 0);
      let timeoutCount = 0;
      for (let request = 0; request < 200; request++) {
        const before = size.blocks;
        read(size, blocksMax);
        if (before > blocksMax) timeoutCount++;
        expect(size.blocks).toBeGreaterThanOrEqual(1);
        expect(size.blocks).toBeLessThanOrEqual(most);
      }
      expect(timeoutCount).toBeLessThanOrEqual(2 + Math.ceil(Math.log2(most)));
      expect(size.blocks).toBeLessThanOrEqual(blocksMax);
    },
  );
  fc.assert(property);
});
