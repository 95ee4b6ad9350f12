import { NodeFault } from '@playline/chain';
import { expect, it } from 'vitest';
import { CHAIN, createTestLane, stepToEnd } from './test/lanes.ts';
import { createStateNode, MemoryChain, transferDraft } from './test/memory-chain.ts';
import { MemoryIndexLogs } from './test/memory-index-logs.ts';

const DEPTH = 4;
const RANGE = 50;

it('the orphaned block at which a node has stopped is not published, however far below the final block it is', async () => {
  const chain = new MemoryChain(DEPTH);
  for (let block = 1; block < RANGE; block++) chain.mine([transferDraft(2, [0, 1], block)]);
  const { state: stopped } = chain;
  chain.reorg(1, [[transferDraft(2, [0, 2], 7)]]);
  for (let block = 0; block < 400; block++) chain.mine([transferDraft(2, [1, 2], block)]);
  const honest = createStateNode('honest', DEPTH, () => chain.state);
  let requests = 0;
  const blocks = async (from: number, to: number) => {
    // After the first request the horizon is known, so the other node is used for the range alone.
    if (requests++ === 1) throw new NodeFault('busy', 'it is asked too often');
    return honest.blocks(from, to);
  };
  const nodes = [{ ...honest, blocks }, createStateNode('stopped', DEPTH, () => stopped)];
  const logs = new MemoryIndexLogs();
  const own = createTestLane(nodes, logs, { chain: { ...CHAIN, rangeBlocks: RANGE }, recordsMax: 1_000 });
  await expect(own.lane.step()).rejects.toThrow('it does not return block 446, which is final');
  own.clock.nowMs += 10_000;
  await stepToEnd(own);
  const hashes = chain.finalLogs().map(({ transactionHash }) => transactionHash);
  const published = logs.activities.map(({ blockchainMetadata }) =>
    blockchainMetadata!.transactionHash.toString('hex'),
  );
  expect(published.map((hash) => `0x${hash}`)).toEqual(hashes);
});
