import { NodeFault } from '@playline/chain';
import { expect, it } from 'vitest';
import { CHAIN, createTestLane, stepToEnd } from './test/lanes.ts';
import { createStateNode, MemoryChain, transferDraft } from './test/memory-chain.ts';
import { MemoryIndexLogs } from './test/memory-index-logs.ts';

const DEPTH = 4;
const RANGE = 50;

const publishedIn = ({ activities }: MemoryIndexLogs) =>
  activities.map(({ blockchainMetadata }) => `0x${blockchainMetadata!.transactionHash.toString('hex')}`);
const finalIn = (chain: MemoryChain) => chain.finalLogs().map(({ transactionHash }) => transactionHash);

it('an orphaned block at which a node has stopped is not published, even if the final block is far above it', async () => {
  const chain = new MemoryChain(DEPTH);
  for (let block = 1; block < RANGE; block++) chain.mine([transferDraft(2, [0, 1], block)]);
  const { state: stopped } = chain;
  chain.reorg(1, [[transferDraft(2, [0, 2], 7)]]);
  for (let block = 0; block < 400; block++) chain.mine([transferDraft(2, [1, 2], block)]);
  const honest = createStateNode('honest', DEPTH, () => chain.state);
  let requests = 0;
  const blocks = async (from: number, to: number) => {
    // The horizon is known after the first request, so the stopped node is used only for the range.
    if (requests++ === 1) throw new NodeFault('busy', 'rate limited');
    return honest.blocks(from, to);
  };
  const nodes = [{ ...honest, blocks }, createStateNode('stopped', DEPTH, () => stopped)];
  const logs = new MemoryIndexLogs();
  const testLane = createTestLane(nodes, logs, { chain: { ...CHAIN, rangeBlocks: RANGE }, recordsMax: 1_000 });
  await expect(testLane.lane.step()).rejects.toThrow('the node does not return final block 446');
  testLane.clock.nowMs += 10_000;
  await stepToEnd(testLane);
  expect(publishedIn(logs)).toEqual(finalIn(chain));
});

it('a replaced block does not become final if a node reports two latest blocks with the same hash', async () => {
  const chain = new MemoryChain(DEPTH);
  const honest = createStateNode('honest', DEPTH, () => chain.state);
  const broken: typeof honest = {
    ...honest,
    block: async (at) => {
      const block = await honest.block(at);
      return at === 'latest' && block !== null ? { ...block, hash: `0x${'ab'.repeat(32)}` } : block;
    },
  };
  const logs = new MemoryIndexLogs();
  const indexed = { chain: { ...CHAIN, finality: DEPTH } };
  const testLane = createTestLane([broken], logs, indexed);
  for (let block = 1; block <= DEPTH; block++) chain.mine([transferDraft(1, [0, 1], block)]);
  await testLane.lane.step();
  chain.reorg(2, [[transferDraft(2, [0, 1], 1)], [transferDraft(2, [0, 1], 2)]]);
  for (let block = 0; block < 2; block++) chain.mine();
  await stepToEnd(testLane);
  await stepToEnd(createTestLane([honest], logs, indexed));
  expect(publishedIn(logs)).toEqual(finalIn(chain));
});
