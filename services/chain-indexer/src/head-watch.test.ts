import { type ChainNode, NodeFault } from '@playline/chain';
import { expect, it } from 'vitest';
import { HeadWatch } from './head-watch.ts';
import { ChainIdentity } from './steps/chain-identity.ts';
import { CHAIN, createTestLane, stepToEnd } from './test/lanes.ts';
import { createStateNode, MemoryChain, transferDraft } from './test/memory-chain.ts';
import { MemoryIndexLogs } from './test/memory-index-logs.ts';

const DEPTH = 4;

/** Creates a chain with two nodes that can be frozen, and a clock that the test controls. */
function createTestWatch({ stillAfterS = 120, names = ['first', 'second'], syncing = '', salt = '' } = {}) {
  const chain = new MemoryChain(DEPTH, salt);
  const clock = { nowMs: 0 };
  /** The chain state that a node returns. By default, the whole chain. */
  const reportedStates = new Map<string, () => MemoryChain['state']>();
  const nodes: readonly ChainNode[] = names.map((name) =>
    createStateNode(name, DEPTH, () => (reportedStates.get(name) ?? (() => chain.state))()),
  );
  const identity = new ChainIdentity(CHAIN.chainId);
  identity.restore(chain.state[0]!.hash);
  const watch = new HeadWatch({ chain: { ...CHAIN, stillAfterS }, identity, nodes, nowMs: () => clock.nowMs });
  /** Polls the nodes, moves the clock by five seconds per poll, and adds a block per poll unless `isMining` is false. */
  const runPolls = async (polls: number, isMining = true) => {
    for (let poll = 0; poll < polls; poll++) {
      if (isMining) chain.mine([transferDraft(1, [0, 1], chain.state.length)]);
      for (const node of nodes) await watch.poll(node);
      clock.nowMs += 5_000;
    }
  };
  const freeze = (name: string) => {
    const { state } = chain;
    reportedStates.set(name, () => state);
  };
  const show = (name: string, stateOf: () => MemoryChain['state']) => void reportedStates.set(name, stateOf);
  let synced = 1;
  if (syncing !== '') show(syncing, () => chain.state.slice(0, synced++));
  const thaw = (name: string) => void reportedStates.delete(name);
  return { chain, clock, identity, nodes, watch, runPolls, show, freeze, thaw };
}
const lagging = ({ heads }: HeadWatch) => heads.filter(({ isLagging }) => isLagging).map(({ node }) => node.name);

it('a node lags while it lacks a block that another node had half a minute ago', async () => {
  const { watch, runPolls, freeze, thaw } = createTestWatch();
  await runPolls(3);
  freeze('first');
  await runPolls(5);
  expect(lagging(watch)).toEqual([]);
  await runPolls(3);
  expect(lagging(watch)).toEqual(['first']);
  thaw('first');
  await runPolls(1);
  expect(lagging(watch)).toEqual([]);
});

it('a lagging node is used only as a last resort, so that indexing continues', async () => {
  const { chain, nodes, watch, runPolls, freeze } = createTestWatch();
  const logs = new MemoryIndexLogs();
  const testLane = createTestLane(nodes, logs, { isLagging: (node) => watch.isLagging(node) });
  await runPolls(3);
  freeze('first');
  await runPolls(12);
  await stepToEnd(testLane);
  expect(logs.activities).toHaveLength(chain.finalLogs().length);
});

it('a silent node lags even if the other nodes have no new blocks', async () => {
  for (const isMining of [true, false]) {
    const { nodes, watch, runPolls } = createTestWatch();
    const silent = () => Promise.reject(new NodeFault('timeout', 'the request timed out'));
    const { block, chainId } = nodes[0]!;
    Object.assign(nodes[0]!, { block: silent, chainId: silent });
    await runPolls(6, isMining);
    expect(lagging(watch)).toEqual(['first']);
    Object.assign(nodes[0]!, { block, chainId });
    await runPolls(1, isMining);
    expect(lagging(watch)).toEqual([]);
  }
});

it('a silent node does not lag if no other node responds', async () => {
  const { nodes, watch, runPolls } = createTestWatch();
  for (const node of nodes)
    Object.assign(node, { block: () => Promise.reject(new NodeFault('unreachable', 'cannot reach the node')) });
  await runPolls(30);
  expect(lagging(watch)).toEqual([]);
});

it('no node lags if all nodes have stopped, or if there is only one node', async () => {
  const { watch, runPolls, freeze } = createTestWatch();
  await runPolls(3);
  for (const name of ['first', 'second']) freeze(name);
  await runPolls(20);
  expect(lagging(watch)).toEqual([]);
  const single = createTestWatch({ names: ['first'] });
  await single.runPolls(20, false);
  expect(lagging(single.watch)).toEqual([]);
});

it('a node does not lag if a reorganisation briefly shortens its chain', async () => {
  const { chain, watch, runPolls } = createTestWatch();
  await runPolls(20);
  chain.states.push(chain.state.slice(0, -2));
  await runPolls(1, false);
  expect(lagging(watch)).toEqual([]);
});

it('a chain is reported as stalled after the configured time, until a node has a new block', async () => {
  const { watch, runPolls } = createTestWatch({ stillAfterS: 60 });
  await runPolls(3);
  await runPolls(10, false);
  expect(watch.stall).toBeNull();
  await runPolls(1, false);
  expect(watch.stall).toEqual({ ms: 60_000, block: 3 });
  await runPolls(1);
  expect(watch.stall).toBeNull();
});

it('a chain is reported as stalled even while a node that is far behind catches up', async () => {
  const { chain, watch, runPolls, freeze } = createTestWatch({ stillAfterS: 60, syncing: 'second' });
  for (let block = 0; block < 1_000; block++) chain.mine();
  await runPolls(3);
  freeze('first');
  await runPolls(12);
  expect(watch.stall).toEqual({ ms: 65_000, block: 1_003 });
  expect(watch.heads[1]!.head).toBeLessThan(100);
});

it('a chain is reported as stalled even if nodes behind one URL alternate', async () => {
  const { chain, watch, runPolls, show } = createTestWatch({ stillAfterS: 60, names: ['first'] });
  await runPolls(3);
  const { state } = chain;
  chain.reorg(1, []);
  const replaced = chain.state.slice(0, -1);
  let polls = 0;
  show('first', () => [state, state.slice(0, -1), replaced][polls++ % 3]!);
  await runPolls(13, false);
  expect(watch.stall).toMatchObject({ ms: 70_000 });
});

it('a single incorrect block number hides a stall for at most ten minutes', async () => {
  const { watch, runPolls, chain, show, thaw } = createTestWatch({ stillAfterS: 60, names: ['first'] });
  await runPolls(3);
  show('first', () =>
    Array.from({ length: 9_000 }, () => chain.state.at(-1)!).map((block, number) => ({ ...block, number })),
  );
  await runPolls(1);
  thaw('first');
  await runPolls(119);
  expect(watch.stall).not.toBeNull();
  await runPolls(3);
  expect(watch.stall).toBeNull();
  await runPolls(20, false);
  expect(watch.stall).not.toBeNull();
});

it('a chain is never reported as stalled if stillAfterS is 0', async () => {
  const { watch, runPolls } = createTestWatch({ stillAfterS: 0 });
  await runPolls(1_000, false);
  expect(watch.stall).toBeNull();
});

it('a chain is not reported as stalled while no node responds', async () => {
  const { nodes, watch, runPolls, clock } = createTestWatch();
  await runPolls(3);
  for (const node of nodes)
    Object.assign(node, { block: () => Promise.reject(new NodeFault('unreachable', 'cannot reach the node')) });
  await runPolls(30);
  expect(watch.stall).toBeNull();
  expect(clock.nowMs).toBeGreaterThan(120_000);
});

it.each([
  ['with a different id', { chainId: async () => 1 }],
  ['that was recreated under the same id', {}],
])('blocks from a node on another chain %s are ignored and do not hide a stall', async (_what, overrides) => {
  const { nodes, watch, runPolls } = createTestWatch();
  const other = createTestWatch({ salt: 'again' });
  Object.assign(nodes[0]!, other.nodes[0], overrides);
  for (let block = 0; block < 50; block++) other.chain.mine();
  await runPolls(3);
  for (let poll = 0; poll < 24; poll++) {
    other.chain.mine();
    await runPolls(1, false);
  }
  expect(watch.heads.map(({ head }) => head)).toEqual([null, 3]);
  expect(lagging(watch)).toEqual([]);
  expect(watch.stall).toEqual({ ms: 125_000, block: 3 });
});

it("a node's chain is checked again after the node was unavailable, and blocks from another chain are discarded", async () => {
  const { nodes, watch, runPolls } = createTestWatch();
  await runPolls(3);
  const { block } = nodes[0]!;
  const other = createTestWatch({ salt: 'again' });
  Object.assign(nodes[0]!, { block: () => Promise.reject(new NodeFault('unreachable', 'cannot reach the node')) });
  await runPolls(1);
  Object.assign(nodes[0]!, { block: other.nodes[0]!.block });
  await runPolls(1);
  expect(watch.heads.map(({ head }) => head)).toEqual([null, 5]);
  Object.assign(nodes[0]!, { block });
  await runPolls(1);
  expect(watch.heads.map(({ head }) => head)).toEqual([6, 6]);
});

it("a node is not polled until the chain's genesis hash is known, which is checked every second", async () => {
  const { chain, nodes, clock } = createTestWatch();
  const identity = new ChainIdentity(CHAIN.chainId);
  const watch = new HeadWatch({ chain: CHAIN, identity, nodes, nowMs: () => clock.nowMs });
  expect(await watch.poll(nodes[0]!)).toBe(1_000);
  expect(watch.heads[0]!.head).toBeNull();
  identity.restore(chain.state[0]!.hash);
  await watch.poll(nodes[0]!);
  expect(watch.heads[0]!.head).toBe(0);
});

it('a node is polled again after its Retry-After, but after a minute at the latest', async () => {
  const { nodes, watch } = createTestWatch();
  const [first] = nodes;
  const busy = (retryAfterMs: number | null) => async () => {
    throw new NodeFault('busy', 'rate limited', retryAfterMs);
  };
  for (const [requested, waits] of [
    [null, 5_000],
    [20_000, 20_000],
    [9_000_000, 60_000],
  ] as const) {
    Object.assign(first!, { block: busy(requested) });
    expect(await watch.poll(first!)).toBe(waits);
  }
});

const createWithFinality = (names: string[]) => {
  const watched = createTestWatch({ names });
  const chain = { ...CHAIN, stillAfterS: 60, finality: 'finalized' as const };
  const watch = new HeadWatch({
    chain,
    identity: watched.identity,
    nodes: watched.nodes,
    nowMs: () => watched.clock.nowMs,
  });
  const poll = async (finalBlocks: readonly (number | null)[], polls: number) => {
    for (let n = 0; n < polls; n++) {
      watched.chain.mine([transferDraft(1, [0, 1], watched.chain.state.length)]);
      for (const [index, node] of watched.nodes.entries()) {
        const number = finalBlocks[index]!;
        const head = watched.chain.state.length;
        const final = number === null ? null : { number, hash: `0x${number}` };
        const first = watched.chain.state[0]!;
        const block = async (at: unknown) =>
          at === 0 ? first : at === 'finalized' ? final : { number: head, hash: `0x${head}` };
        await watch.poll(Object.assign(node, { block }));
      }
      watched.clock.nowMs += 5_000;
    }
  };
  return { watch, poll };
};

it('a node lags if its final block stops while its latest block advances', async () => {
  for (const stuck of [1, null]) {
    const { watch, poll } = createWithFinality(['first', 'second']);
    await poll([stuck, 9], 9);
    expect(lagging(watch)).toEqual(['first']);
  }
});

it('a chain is reported as stalled if no node has a new final block for half an hour', async () => {
  const { watch, poll } = createWithFinality(['first']);
  await poll([7], 359);
  expect(watch.stall).toBeNull();
  await poll([7], 1);
  expect(watch.stall).toEqual({ ms: 1_800_000, block: 7 });
  await poll([8], 1);
  expect(watch.stall).toBeNull();
});
