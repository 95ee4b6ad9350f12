import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  addOffset,
  type BucketCount,
  createRangeCursor,
  findSuspectRanges,
  joinRanges,
  type OffsetRange,
} from './ranges.ts';

const offsetsOf = (ranges: readonly OffsetRange[]) =>
  ranges.flatMap(({ start, end }) => Array.from({ length: end - start }, (_, index) => start + index));

function toRanges(offsets: Iterable<number>): OffsetRange[] {
  const ranges: { start: number; end: number }[] = [];
  for (const offset of [...new Set(offsets)].sort((a, b) => a - b)) addOffset(ranges, offset, Number.POSITIVE_INFINITY);
  return ranges;
}

it('findSuspectRanges returns exactly the buckets in which some offset does not occur exactly once', () => {
  const range = fc.tuple(fc.nat(30), fc.nat(40)).map(([start, size]) => ({ start, end: start + size }));
  const inputs = fc.record({
    range,
    rows: fc.array(fc.nat(75), { maxLength: 120 }),
    bucketSize: fc.integer({ min: 1, max: 9 }),
  });
  fc.assert(
    fc.property(inputs, ({ range, rows, bucketSize }) => {
      const full = offsetsOf([range]).filter((offset) => offset % 3 !== 0);
      const within = [...rows, ...full].filter((offset) => offset >= range.start && offset < range.end);
      const counts = new Map<number, BucketCount>();
      for (const index of new Set(within.map((offset) => Math.floor(offset / bucketSize)))) {
        const inBucket = within.filter((offset) => Math.floor(offset / bucketSize) === index);
        counts.set(index, { partition: 0, index, rows: inBucket.length, offsets: new Set(inBucket).size });
      }
      const suspects = findSuspectRanges(range, counts, { bucketSize, bucketsMax: 2 });
      const suspected = new Set(offsetsOf(suspects));
      const timesOf = (offset: number) => within.filter((each) => each === offset).length;
      const isSound = (offset: number) => {
        const bucket = offsetsOf([range]).filter(
          (each) => Math.floor(each / bucketSize) === Math.floor(offset / bucketSize),
        );
        return bucket.every((each) => timesOf(each) === 1);
      };
      for (const offset of offsetsOf([range])) expect(suspected.has(offset)).toBe(!isSound(offset));
      for (const { start, end } of suspects) expect(end - start).toBeLessThanOrEqual(2 * bucketSize);
    }),
  );
});

it('joinRanges returns ranges that contain every input offset exactly once', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(60)), fc.nat(10), (offsets, distance) => {
      const ranges = toRanges(offsets);
      const read = offsetsOf(joinRanges(ranges, distance));
      expect(new Set(read).size).toBe(read.length);
      const isInput = createRangeCursor(ranges);
      expect(read.filter(isInput)).toEqual(offsetsOf(ranges));
    }),
  );
});
