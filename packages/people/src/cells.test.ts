import { toPartition } from '@playline/stores';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { cellOf, cellsOf } from './cells.ts';

const count = fc.integer({ min: 1, max: 100 });

it("a partition's cells include the cell of every environment in the partition, and only one if both counts are equal", () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1 }), count, count, (environmentId, partitions, cells) => {
      const partition = toPartition(Buffer.from(environmentId), partitions);
      expect(cellsOf(partition, { partitions, cells })).toContain(cellOf(environmentId, cells));
      expect(cellsOf(partition, { partitions, cells: partitions })).toEqual([partition]);
    }),
  );
});

it('each cell belongs to one partition if the number of cells is a multiple of the number of partitions', () => {
  fc.assert(
    fc.property(count, fc.integer({ min: 1, max: 10 }), (partitions, factor) => {
      const cells = partitions * factor;
      const all = Array.from({ length: partitions }, (_, partition) => cellsOf(partition, { partitions, cells }));
      expect(all.flat().sort((a, b) => a - b)).toEqual(Array.from({ length: cells }, (_, cell) => cell));
    }),
  );
});
