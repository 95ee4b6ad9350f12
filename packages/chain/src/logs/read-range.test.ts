import { expect, it } from 'vitest';
import { type ChainBlock, type ChainLog, type ChainNode, NodeFault } from '../node.ts';
import { type BlockRange, bloomOf, ForkFault, readRange } from './read-range.ts';
import { CONSECUTIVE_TRANSFER, TRANSFER } from './transfers.ts';

const hashOf = (number: number, branch = 0) => `0x${branch}${number.toString(16).padStart(63, '0')}`;
const numberOf = (hash: string) => Number(`0x${hash.slice(3)}`);
const logOf = (number: number, logIndex: number): ChainLog => ({
  blockNumber: number,
  blockHash: hashOf(number),
  transactionHash: hashOf(number, 7),
  transactionIndex: 0,
  logIndex,
  address: `0x${'70'.repeat(20)}`,
  data: '0x',
  topics: [TRANSFER, `0x${'00'.repeat(31)}${logIndex.toString(16).padStart(2, '0')}`],
});
const logsOf = (number: number) => [logOf(number, 0), logOf(number, 1)];
const blockOf = (number: number): ChainBlock => ({
  number,
  hash: hashOf(number),
  parentHash: hashOf(number - 1),
  timestampS: number,
  logsBloom: bloomOf(logsOf(number)),
});
const list = <T>(from: number, to: number, of: (number: number) => T) =>
  Array.from({ length: to - from + 1 }, (_, index) => of(from + index));

const nodeOf = (overrides: Partial<ChainNode> = {}): ChainNode => ({
  name: 'test',
  chainId: async () => 1,
  block: async (at) => blockOf(Number(at)),
  blocks: async (from, to) => list(from, to, blockOf),
  blocksAt: async (numbers) => numbers.map(blockOf),
  logsOf: async (hash) => logsOf(numberOf(hash)),
  logsByReceipts: async (hash) => logsOf(numberOf(hash)),
  logsIn: async (from, to) => list(from, to, logsOf).flat(),
  calls: async () => [],
  ...overrides,
});
const range = (overrides: Partial<BlockRange> = {}): BlockRange => ({
  from: 10,
  to: 12,
  after: { number: 9, hash: hashOf(9) },
  knownBlocks: [],
  hasBlooms: true,
  ...overrides,
});

it('readRange returns all blocks and logs if the range links to the last indexed block', async () => {
  const { blocks, logs } = await readRange(nodeOf(), range());
  expect(blocks.map(({ number }) => number)).toEqual([10, 11, 12]);
  expect(logs).toEqual([10, 11, 12].flatMap(logsOf));
  const many = await readRange(nodeOf(), range({ to: 60 }));
  expect(many.logs).toHaveLength(102);
});

it('readRange fails if the range does not link to the last indexed block', async () => {
  const fault = await readRange(nodeOf(), range({ after: { number: 9, hash: hashOf(9, 1) } })).catch(
    (thrown) => thrown,
  );
  expect(fault).toBeInstanceOf(ForkFault);
  expect(fault.block).toEqual({ number: 9, hash: hashOf(9, 1) });
});

it('readRange fails if the range does not link to the final block, even if the final block is above the range', async () => {
  const at = (number: number, branch: number) => ({ knownBlocks: [{ number, hash: hashOf(number, branch) }] });
  await expect(readRange(nodeOf(), range(at(11, 1)))).rejects.toThrow(ForkFault);
  await expect(readRange(nodeOf(), range(at(100, 1)))).rejects.toThrow(ForkFault);
  expect((await readRange(nodeOf(), range(at(100, 0)))).blocks).toHaveLength(3);
  // Block 12 is orphaned: the next block does not link to it.
  const orphan = { ...blockOf(12), hash: hashOf(12, 1) };
  const blocks = async (from: number, to: number) =>
    list(from, to, (number) => (number === 12 ? orphan : blockOf(number)));
  await expect(readRange(nodeOf({ blocks }), range(at(100, 0)))).rejects.toThrow('does not link to the previous block');
});

it('readRange fails if the range is not on the chain of a known block that is far above the range', async () => {
  const farBlock = { number: 100_000, hash: hashOf(100_000) };
  const orphan = { ...blockOf(12), hash: hashOf(12, 1) };
  // The node has stopped at block 12, so no child reveals that block 12 was orphaned.
  const stopped = { blocks: async () => [blockOf(10), blockOf(11), orphan] };
  const blocksAt = async (numbers: readonly number[]) =>
    numbers.map((number) => (number === 12 ? orphan : number === farBlock.number ? null : blockOf(number)));
  const farRange = range({ knownBlocks: [farBlock] });
  await expect(readRange(nodeOf({ ...stopped, blocksAt }), farRange)).rejects.toMatchObject({ kind: 'behind' });
  // A second node behind the same URL returns the known block.
  await expect(readRange(nodeOf(stopped), farRange)).rejects.toThrow('block 12 is not on the chain of block 100000');
  const fork = async (numbers: readonly number[]) =>
    numbers.map((number) => ({ ...blockOf(number), hash: hashOf(number, number > 12 ? 1 : 0) }));
  const fault = await readRange(nodeOf({ blocksAt: fork }), farRange).catch((thrown) => thrown);
  expect(fault).toBeInstanceOf(ForkFault);
  expect(fault.block).toEqual(farBlock);
  expect((await readRange(nodeOf(), farRange)).blocks).toHaveLength(3);
});

it.each([
  ['omits a block', { blocks: async () => [blockOf(10), blockOf(12)] }, 'does not return all blocks'],
  ['returns the wrong block', { blocks: async () => [10, 11, 13].map(blockOf) }, 'block 13 instead of 12'],
  ['omits a log', { logsOf: async (hash: string) => logsOf(numberOf(hash)).slice(1) }, 'are missing or out of order'],
  [
    'omits the last log',
    { logsOf: async (hash: string) => logsOf(numberOf(hash)).slice(0, 1) },
    'do not match the bloom',
  ],
  [
    'returns a log twice',
    { logsOf: async (hash: string) => [logOf(numberOf(hash), 0), ...logsOf(numberOf(hash))] },
    'missing or out of order',
  ],
  [
    'returns logs from a replaced block with the same number',
    { logsOf: async (hash: string) => logsOf(numberOf(hash)).map((log) => ({ ...log, blockHash: hashOf(1, 1) })) },
    'has the hash of another block',
  ],
  ['returns logs that were not requested', { logsOf: async () => logsOf(40) }, 'not'],
])('readRange fails if the node %s', async (_what, overrides, message) => {
  await expect(readRange(nodeOf(overrides), range())).rejects.toThrow(message);
});

it('readRange fails if the first or last block is replaced while the logs are read', async () => {
  const block = async () => ({ ...blockOf(60), hash: hashOf(60, 1) });
  await expect(readRange(nodeOf({ block }), range({ to: 60 }))).rejects.toThrow('was replaced while');
});

it('readRange requests logs for every block of a chain without blooms and checks their order', async () => {
  const blocks = async (from: number, to: number) =>
    list(from, to, (number) => ({ ...blockOf(number), logsBloom: Buffer.alloc(256) }));
  const { logs } = await readRange(nodeOf({ blocks }), range({ hasBlooms: false }));
  expect(logs).toHaveLength(6);
  const reversed = async (hash: string) => logsOf(numberOf(hash)).toReversed();
  await expect(readRange(nodeOf({ blocks, logsOf: reversed }), range({ hasBlooms: false }))).rejects.toThrow(
    'out of order',
  );
  expect((await readRange(nodeOf({ blocks }), range({ hasBlooms: true }))).logs).toEqual([]);
});

const nodeWithRange = (at: number, overrides: Partial<ChainNode> = {}) =>
  nodeOf({
    logsOf: async (hash) =>
      logsOf(numberOf(hash)).map((log) => (log.blockNumber === at ? { ...log, topics: [CONSECUTIVE_TRANSFER] } : log)),
    ...overrides,
  });
const read = (node: ChainNode) => readRange(node, range({ hasBlooms: false }));

it("readRange reads the parent block's time only if the token budget depends on it", async () => {
  expect((await read(nodeWithRange(10))).parentTimestampS).toBe(9);
  const block = () => Promise.reject(new NodeFault('unreachable', 'not expected'));
  expect((await read(nodeWithRange(11, { block }))).parentTimestampS).toBeNull();
});

it("readRange fails if it cannot read the time from the range's actual parent block", async () => {
  const other = async () => ({ ...blockOf(9), hash: hashOf(9, 1) });
  await expect(read(nodeWithRange(10, { block: other }))).rejects.toMatchObject({ kind: 'inconsistent' });
  await expect(read(nodeWithRange(10, { block: async () => null }))).rejects.toMatchObject({ kind: 'behind' });
});

const refuse = (kind: NodeFault['kind']) => () => Promise.reject(new NodeFault(kind, 'too many logs'));
const single = range({ to: 10 });

it.each(['too-large', 'timeout', 'unreachable'] as const)(
  "readRange reads a block's logs from its receipts if the node refuses the logs (%s)",
  async (kind) => {
    const { logs } = await readRange(nodeOf({ logsOf: refuse(kind) }), single);
    expect(logs).toEqual(logsOf(10));
  },
);

it("readRange fails if a block's receipts lack a log or belong to another block", async () => {
  for (const [logs, message] of [
    [logsOf(10).slice(1), 'missing or out of order'],
    [logsOf(10).slice(0, 1), 'do not match the bloom'],
    [logsOf(10).map((log) => ({ ...log, blockHash: hashOf(1, 1) })), 'has the hash of another block'],
  ] as const) {
    const node = nodeOf({ logsOf: refuse('too-large'), logsByReceipts: async () => logs });
    await expect(readRange(node, single)).rejects.toThrow(message);
  }
});

it('readRange fails with too-large if receipts are also refused, unless the node is busy or inconsistent', async () => {
  const requested = (kind: NodeFault['kind']) =>
    readRange(nodeOf({ logsOf: refuse('too-large'), logsByReceipts: refuse(kind) }), single);
  await expect(requested('behind')).rejects.toMatchObject({ kind: 'too-large' });
  await expect(requested('busy')).rejects.toMatchObject({ kind: 'busy' });
  await expect(requested('inconsistent')).rejects.toMatchObject({ kind: 'inconsistent' });
});

it('readRange requests receipts only for a single block, because a smaller range may succeed', async () => {
  await expect(readRange(nodeOf({ logsOf: refuse('too-large') }), range())).rejects.toThrow('too many logs');
});
