import { type ChainNode, NodeFault } from '@playline/chain';
import { describe, expect, it } from 'vitest';
import { CHAIN, createTestLane, stepToEnd } from './test/lanes.ts';
import { createStateNode, MemoryChain, transferDraft } from './test/memory-chain.ts';
import { MemoryIndexLogs } from './test/memory-index-logs.ts';

const DEPTH = 4;
function createBusyChain(blocks: number): MemoryChain {
  const chain = new MemoryChain(DEPTH);
  for (let block = 0; block < blocks; block++) chain.mine([transferDraft(1, [0, 1], block)]);
  return chain;
}
const honestNode = (chain: MemoryChain) => createStateNode('honest', DEPTH, () => chain.state);
const late = () => Promise.reject(new NodeFault('late', 'it does not answer in time'));

/** A node that answers about so many blocks at once, and about more of them never. */
function createSlowNode(chain: MemoryChain, able: number) {
  const honest = honestNode(chain);
  const asked: number[] = [];
  const node: ChainNode = {
    ...honest,
    logsIn: (from, to) => {
      asked.push(to - from + 1);
      return to - from + 1 > able ? late() : honest.logsIn(from, to);
    },
  };
  return { node, asked };
}

describe('a node that never answers in time about a whole range', () => {
  it('is asked for less until it does, and the chain is indexed to its end', async () => {
    const chain = createBusyChain(2_000);
    const logs = new MemoryIndexLogs();
    const { node, asked } = createSlowNode(chain, 100);
    await stepToEnd(createTestLane([node], logs, { chain: { ...CHAIN, rangeBlocks: 800 }, recordsMax: 1_000 }));
    expect(logs.activities).toHaveLength(chain.finalLogs().length);
    // Four halvings: two answers are late before the first, one before each of the others.
    expect(asked.filter((blocks) => blocks > 100)).toEqual([800, 800, 400, 200]);
  });

  it('is not taken for one that wants less when it answers nothing at all', async () => {
    const chain = createBusyChain(100);
    const logs = new MemoryIndexLogs();
    const { node, asked } = createSlowNode(chain, 100);
    const own = createTestLane([node], logs, { chain: { ...CHAIN, rangeBlocks: 50 } });
    await own.lane.step();
    const silent = { ...node, block: late, blocks: late };
    Object.assign(node, silent);
    for (let look = 0; look < 10; look++) {
      await expect(own.lane.step()).rejects.toThrow('no node answers: it does not answer in time');
      own.clock.nowMs += 120_000;
    }
    Object.assign(node, honestNode(chain));
    await stepToEnd(own);
    expect(asked.every((blocks) => blocks >= 46)).toBe(true);
  });
});
