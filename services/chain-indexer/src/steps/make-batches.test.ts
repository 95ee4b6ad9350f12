import type { ChainLog, LogRecords, ReadBlocks } from '@playline/chain';
import type { ActivityRecord } from '@playline/contracts';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { makeBatches } from './make-batches.ts';

const hash = `0x${'ab'.repeat(32)}`;
const BLOCK: ReadBlocks['blocks'][number] = {
  ...{ number: 7, hash, parentHash: hash, timestampS: 0, logsBloom: Buffer.alloc(0) },
};
const logOf = (logIndex: number): ChainLog => ({
  ...{ blockNumber: 7, blockHash: hash, transactionHash: hash, transactionIndex: 0, logIndex },
  ...{ address: '0x', topics: [], data: '0x' },
});

/** For each log, the lengths of the details of its activities. */
const lengths = fc.array(fc.array(fc.nat(3_000), { maxLength: 4 }), { maxLength: 60 });

it('a block is divided between logs into batches of bounded records and bytes, in order, whatever it holds', () => {
  const property = fc.property(lengths, fc.nat(60), (given, firstLog) => {
    const readActivities = ({ logIndex }: ChainLog): LogRecords => {
      const records = given[logIndex]!.map((length, item) => {
        return { id: Buffer.from([logIndex, item]), details: 'x'.repeat(length) } as ActivityRecord;
      });
      return { records, tokens: [], claimed: null, unread: null };
    };
    const read = { blocks: [BLOCK], logs: given.map((_, logIndex) => logOf(logIndex)) };
    const rules = { readActivities, onRead: () => {}, recordsMax: 10, bytesMax: 8_000 };
    const batches = [...makeBatches(read, { from: 7, firstLog }, rules)];
    const ids = batches.flatMap(({ activities }) => activities.map(({ id }) => id.toString('hex')));
    const expected = read.logs.slice(firstLog).flatMap((log) => readActivities(log).records);
    expect(ids).toEqual(expected.map(({ id }) => id.toString('hex')));
    for (const { activities } of batches) {
      expect(activities.length).toBeLessThan(10 + 4);
      const bytes = activities.reduce((sum, { details }) => sum + details.length + 300, 0);
      expect(bytes).toBeLessThan(8_000 + 4 * 3_300);
    }
    const ends = batches.map(({ reached }) => reached.nextLog);
    expect(ends.pop()).toBeNull();
    expect(ends).toEqual([...ends].sort((one, other) => one! - other!));
  });
  fc.assert(property);
});
