import { type ChainLog, createReadActivities, type LogRecords, type ReadBlocks } from '@playline/chain';
import type { ActivityRecord } from '@playline/contracts';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { makeBatches } from '../lane.ts';
import { TOPIC } from '../test/logs.ts';

const hash = `0x${'ab'.repeat(32)}`;
const BLOCK: ReadBlocks['blocks'][number] = {
  number: 7,
  hash,
  parentHash: hash,
  timestampS: 0,
  logsBloom: Buffer.alloc(0),
};
const logOf = (logIndex: number): ChainLog => ({
  blockNumber: 7,
  blockHash: hash,
  transactionHash: hash,
  transactionIndex: 0,
  logIndex,
  address: '0x',
  topics: [],
  data: '0x',
});

const lengths = fc.array(fc.array(fc.nat(3_000), { maxLength: 4 }), { maxLength: 60 });

it('blocks are split between logs into ordered batches with limited records and bytes', () => {
  const property = fc.property(lengths, fc.nat(60), (lengthsByLog, firstLog) => {
    const readOne = ({ logIndex }: ChainLog): LogRecords => {
      const records = lengthsByLog[logIndex]!.map((length, item) => {
        return { id: Buffer.from([logIndex, item]), details: 'x'.repeat(length) } as ActivityRecord;
      });
      return { records, tokens: [], summary: null, unread: null };
    };
    const read = { blocks: [BLOCK], logs: lengthsByLog.map((_, logIndex) => logOf(logIndex)), parentTimestampS: null };
    const readActivities = ({ logs }: ReadBlocks) => logs.map((log) => ({ block: BLOCK, log, reading: readOne(log) }));
    const rules = { readActivities, onRead: () => {}, recordsMax: 10, bytesMax: 8_000 };
    const batches = [...makeBatches(read, { from: 7, firstLog }, rules)];
    const ids = batches.flatMap(({ activities }) => activities.map(({ id }) => id.toString('hex')));
    const expected = read.logs.slice(firstLog).flatMap((log) => readOne(log).records);
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

it('a block above its budget yields the same records and one summary, no matter where publishing resumes', () => {
  const word = (value: number) => value.toString(16).padStart(64, '0');
  const rangeOf = (tokens: number, logIndex: number): ChainLog => ({
    ...logOf(logIndex),
    address: `0x${'c0'.repeat(20)}`,
    topics: [TOPIC.consecutiveTransfer, `0x${word(0)}`, `0x${word(0)}`, `0x${word(7)}`],
    data: `0x${word(tokens - 1)}`,
  });
  const tokens = fc.integer({ min: 1, max: 30 });
  const property = fc.property(fc.array(tokens, { minLength: 1, maxLength: 8 }), fc.nat(8), (tokensByLog, cut) => {
    const read = { blocks: [BLOCK], logs: tokensByLog.map(rangeOf), parentTimestampS: null };
    const batchesFrom = (firstLog: number) => {
      const settings = { chain: 'c', nativeSymbol: 'ETH', marketplaces: [], bridges: [] };
      const readActivities = createReadActivities(settings, { itemsPerContract: 20, itemsFromRanges: () => 40 });
      return [...makeBatches(read, { from: 7, firstLog }, { readActivities, onRead: () => {}, recordsMax: 5 })];
    };
    const idsOf = (batches: ReturnType<typeof batchesFrom>) =>
      batches.flatMap(({ activities }) => activities.map(({ id }) => id.toString('hex')));
    const allBatches = batchesFrom(0);
    const at = allBatches.slice(0, cut).findLast(({ reached }) => reached.nextLog !== null);
    const firstBatches = allBatches.slice(0, at === undefined ? 0 : allBatches.indexOf(at) + 1);
    const remainingBatches = batchesFrom(at?.reached.nextLog ?? 0);
    expect([...idsOf(firstBatches), ...idsOf(remainingBatches)]).toEqual(idsOf(allBatches));
    const published = [...firstBatches, ...remainingBatches].flatMap(({ notices }) => notices);
    const reported = tokensByLog.reduce((sum, count) => sum + count, 0);
    const summarised = Number(published[0]?.tokens ?? 0n);
    expect(published).toHaveLength(summarised === 0 ? 0 : 1);
    expect(idsOf(allBatches).length + summarised).toBe(reported);
    expect(idsOf(allBatches).length).toBeLessThanOrEqual(20);
  });
  fc.assert(property);
});
