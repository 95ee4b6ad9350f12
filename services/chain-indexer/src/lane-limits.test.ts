import { type ChainNode, NodeFault } from '@playline/chain';
import { createRpcNode } from '@playline/chain/rpc';
import { expect, it, onTestFinished } from 'vitest';
import { CHAIN, createTestLane, stepToEnd } from './test/lanes.ts';
import { createStateNode, MemoryChain, transferDraft } from './test/memory-chain.ts';
import { MemoryIndexLogs } from './test/memory-index-logs.ts';
import { openRpcServer, type RpcRequest } from './test/open-rpc-server.ts';

const DEPTH = 4;
function createBusyChain(blocks: number): MemoryChain {
  const chain = new MemoryChain(DEPTH);
  for (let block = 0; block < blocks; block++) chain.mine([transferDraft(1, [0, 1], block)]);
  return chain;
}
const honestNode = (chain: MemoryChain) => createStateNode('honest', DEPTH, () => chain.state);
const timeOut = () => Promise.reject(new NodeFault('timeout', 'the request timed out'));
const unreachable = () => Promise.reject(new NodeFault('unreachable', 'the response is truncated'));

function createSlowNode(chain: MemoryChain, blocksMax: number, fail: () => Promise<never> = timeOut) {
  const honest = honestNode(chain);
  const requested: number[] = [];
  const node: ChainNode = {
    ...honest,
    logsIn: (from, to) => {
      requested.push(to - from + 1);
      return to - from + 1 > blocksMax ? fail() : honest.logsIn(from, to);
    },
  };
  return { node, requested };
}

it.each([
  ['does not respond in time', timeOut],
  ['truncates its response', unreachable],
])(
  'a node that %s receives requests for smaller ranges until it responds, and the chain is indexed',
  async (_how, fail) => {
    const chain = createBusyChain(2_000);
    const logs = new MemoryIndexLogs();
    const { node, requested } = createSlowNode(chain, 100, fail);
    await stepToEnd(createTestLane([node], logs, { chain: { ...CHAIN, rangeBlocks: 800 }, recordsMax: 1_000 }));
    expect(logs.activities).toHaveLength(chain.finalLogs().length);
    // The first halving takes two faults, each further halving one. Larger ranges are retried later.
    const tooMany = requested.filter((blocks) => blocks > 100);
    expect(tooMany.slice(0, 4)).toEqual([800, 800, 400, 200]);
    expect(tooMany.slice(4).every((blocks) => blocks <= 125)).toBe(true);
  },
);

it('the indexer does not reduce its ranges for a node that does not respond at all', async () => {
  const chain = createBusyChain(100);
  const logs = new MemoryIndexLogs();
  const { node, requested } = createSlowNode(chain, 100);
  const testLane = createTestLane([node], logs, { chain: { ...CHAIN, rangeBlocks: 50 } });
  await testLane.lane.step();
  Object.assign(node, { ...node, block: timeOut, blocks: timeOut });
  for (let poll = 0; poll < 10; poll++) {
    await expect(testLane.lane.step()).rejects.toThrow('no node responds: the request timed out');
    testLane.clock.nowMs += 120_000;
  }
  Object.assign(node, honestNode(chain));
  await stepToEnd(testLane);
  expect(requested.every((blocks) => blocks >= 46)).toBe(true);
});

const chain = createBusyChain(2_000);
const settings = { chain: { ...CHAIN, rangeBlocks: 800 }, recordsMax: 1_000 };

it('a range is not halved if the node does not respond to a small request either', async () => {
  const { node, requested } = createSlowNode(chain, 0, unreachable);
  const { chainId } = node;
  let isKnown = false;
  const check = () => {
    if (isKnown) return unreachable();
    isKnown = true;
    return chainId();
  };
  const testLane = createTestLane([Object.assign(node, { chainId: check })], new MemoryIndexLogs(), settings);
  for (let poll = 0; poll < 10; poll++) {
    await expect(testLane.lane.step()).rejects.toThrow('no node responds: the response is truncated');
    testLane.clock.nowMs += 120_000;
  }
  expect(requested).toEqual(Array(10).fill(800));
});

it("one node's limits do not reduce the ranges requested from other nodes", async () => {
  const refuse = () => Promise.reject(new NodeFault('too-large', 'too many blocks'));
  const refusing = { ...honestNode(chain), logsIn: refuse, logsOf: refuse, logsByReceipts: refuse };
  const { node, requested } = createSlowNode(chain, 800);
  const logs = new MemoryIndexLogs();
  await stepToEnd(createTestLane([refusing, node], logs, settings));
  // The first block has no logs, so the other node returns that block.
  expect(requested).toEqual([800, 800, 396]);
  expect(logs.activities).toHaveLength(chain.finalLogs().length);
});

const RECEIPTS = ['eth_getBlockReceipts', 'eth_getTransactionReceipt'];

/** Opens an HTTP node for a chain with one large block. The node rejects the given requests. */
async function openLimitedNode(isRefused: (request: RpcRequest, chain: MemoryChain) => boolean) {
  const chain = createBusyChain(6);
  chain.mine(Array.from({ length: 300 }, (_, value) => transferDraft(1, [0, 1], value)));
  for (let block = 0; block < 2 * DEPTH; block++) chain.mine([transferDraft(1, [0, 1], block)]);
  const server = await openRpcServer(chain);
  onTestFinished(() => server.close());
  server.isRefused = (request) => isRefused(request, chain);
  const logs = new MemoryIndexLogs();
  const node = createRpcNode({ name: 'limited', url: server.url });
  return { chain, server, logs, testLane: createTestLane([node], logs, { recordsMax: 100 }) };
}
const LARGE_BLOCK = 7;
const isLarge = ({ method, params: [filter] }: RpcRequest, chain: MemoryChain) =>
  method === 'eth_getLogs' && (filter as { blockHash?: string }).blockHash === chain.state[LARGE_BLOCK]!.hash;
const isRangeRequest = ({ method, params: [filter] }: RpcRequest) =>
  method === 'eth_getLogs' && (filter as { blockHash?: string }).blockHash === undefined;

it.each([
  ["the block's receipts", [] as string[], 'eth_getBlockReceipts'],
  ['its transaction receipts', ['eth_getBlockReceipts'], 'eth_getTransactionReceipt'],
])('a block whose logs every node refuses is published completely from %s', async (_what, refused, requested) => {
  const { chain, server, logs, testLane } = await openLimitedNode(
    (request, ofChain) => isLarge(request, ofChain) || isRangeRequest(request) || refused.includes(request.method),
  );
  await stepToEnd(testLane);
  expect(logs.activities).toHaveLength(chain.finalLogs().length);
  expect(new Set(logs.activities.map(({ id }) => id.toString('hex'))).size).toBe(chain.finalLogs().length);
  expect([...server.requests.keys()]).toContain(requested);
});

it('a block whose logs and receipts are refused is reported, and no later block is published', async () => {
  const { chain, logs, testLane } = await openLimitedNode(
    (request, ofChain) => isLarge(request, ofChain) || isRangeRequest(request) || RECEIPTS.includes(request.method),
  );
  await expect(stepToEnd(testLane, 50)).rejects.toThrow('not at the end');
  expect(await testLane.metrics.text()).toMatch(/playline_chain_indexer_too_large\{.*\} 1/);
  expect(logs.activities).toHaveLength(chain.finalLogs().filter(({ blockNumber }) => blockNumber < LARGE_BLOCK).length);
});
