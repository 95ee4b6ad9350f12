import { type ChainNode, NodeFault } from '@playline/chain';
import { expect, it } from 'vitest';
import { HeadWatch } from './head-watch.ts';
import { ChainIdentity } from './steps/chain-identity.ts';
import { CHAIN, createTestLane, stepToEnd } from './test/lanes.ts';
import { createStateNode, MemoryChain, transferDraft } from './test/memory-chain.ts';
import { MemoryIndexLogs } from './test/memory-index-logs.ts';

const DEPTH = 4;

/** A chain with two nodes, either of which may stop following the chain, and a clock that the test moves. */
function createWatched({ stillAfterS = 120, names = ['first', 'second'], syncing = '', salt = '' } = {}) {
  const chain = new MemoryChain(DEPTH, salt);
  const clock = { nowMs: 0 };
  /** The chain state that a node serves; the whole chain unless set. */
  const shown = new Map<string, () => MemoryChain['state']>();
  const nodes: readonly ChainNode[] = names.map((name) =>
    createStateNode(name, DEPTH, () => (shown.get(name) ?? (() => chain.state))()),
  );
  const identity = new ChainIdentity(CHAIN.chainId);
  identity.restore(chain.state[0]!.hash);
  const watch = new HeadWatch({ chain: { ...CHAIN, stillAfterS }, identity, nodes, nowMs: () => clock.nowMs });
  /** Moves the clock by five seconds per poll; each poll adds a block unless `isMining` is false. */
  const pass = async (polls: number, isMining = true) => {
    for (let poll = 0; poll < polls; poll++) {
      if (isMining) chain.mine([transferDraft(1, [0, 1], chain.state.length)]);
      for (const node of nodes) await watch.poll(node);
      clock.nowMs += 5_000;
    }
  };
  const freeze = (name: string) => {
    const { state } = chain;
    shown.set(name, () => state);
  };
  const show = (name: string, stateOf: () => MemoryChain['state']) => void shown.set(name, stateOf);
  let synced = 1;
  if (syncing !== '') show(syncing, () => chain.state.slice(0, synced++));
  const thaw = (name: string) => void shown.delete(name);
  return { chain, clock, identity, nodes, watch, pass, show, freeze, thaw };
}
const lagging = ({ heads }: HeadWatch) => heads.filter(({ lags }) => lags).map(({ node }) => node.name);

it('a node lags while it lacks a block that another node had half a minute ago', async () => {
  const { watch, pass, freeze, thaw } = createWatched();
  await pass(3);
  freeze('first');
  await pass(5);
  expect(lagging(watch)).toEqual([]);
  await pass(3);
  expect(lagging(watch)).toEqual(['first']);
  thaw('first');
  await pass(1);
  expect(lagging(watch)).toEqual([]);
});

it('a lagging node is used after the other nodes, so that indexing continues', async () => {
  const { chain, nodes, watch, pass, freeze } = createWatched();
  const logs = new MemoryIndexLogs();
  const own = createTestLane(nodes, logs, { lags: (node) => watch.lags(node) });
  await pass(3);
  freeze('first');
  await pass(12);
  await stepToEnd(own);
  expect(logs.activities).toHaveLength(chain.finalLogs().length);
});

it('a silent node is used after the other nodes, even without new blocks', async () => {
  for (const isMining of [true, false]) {
    const { nodes, watch, pass } = createWatched();
    const silent = () => Promise.reject(new NodeFault('late', 'it does not respond in time'));
    const { block, chainId } = nodes[0]!;
    Object.assign(nodes[0]!, { block: silent, chainId: silent });
    await pass(6, isMining);
    expect(lagging(watch)).toEqual(['first']);
    Object.assign(nodes[0]!, { block, chainId });
    await pass(1, isMining);
    expect(lagging(watch)).toEqual([]);
  }
});

it('a silent node does not lag when no other node responds', async () => {
  const { nodes, watch, pass } = createWatched();
  for (const node of nodes)
    Object.assign(node, { block: () => Promise.reject(new NodeFault('unreachable', 'it cannot be reached')) });
  await pass(30);
  expect(lagging(watch)).toEqual([]);
});

it('no node lags when all nodes have stopped, or when there is only one node', async () => {
  const { watch, pass, freeze } = createWatched();
  await pass(3);
  for (const name of ['first', 'second']) freeze(name);
  await pass(20);
  expect(lagging(watch)).toEqual([]);
  const single = createWatched({ names: ['first'] });
  await single.pass(20, false);
  expect(lagging(single.watch)).toEqual([]);
});

it('a reorganisation that briefly makes a chain shorter is not a lag', async () => {
  const { chain, watch, pass } = createWatched();
  await pass(20);
  chain.states.push(chain.state.slice(0, -2));
  await pass(1, false);
  expect(lagging(watch)).toEqual([]);
});

it('a stalled chain is reported after the configured time with its latest block, until a node has a new block', async () => {
  const { watch, pass } = createWatched({ stillAfterS: 60 });
  await pass(3);
  await pass(10, false);
  expect(watch.stall).toBeNull();
  await pass(1, false);
  expect(watch.stall).toEqual({ ms: 60_000, block: 3 });
  await pass(1);
  expect(watch.stall).toBeNull();
});

it('a stalled chain is reported while another node catches up from far behind', async () => {
  const { chain, watch, pass, freeze } = createWatched({ stillAfterS: 60, syncing: 'second' });
  for (let block = 0; block < 1_000; block++) chain.mine();
  await pass(3);
  freeze('first');
  await pass(12);
  expect(watch.stall).toEqual({ ms: 65_000, block: 1_003 });
  expect(watch.heads[1]!.head).toBeLessThan(100);
});

it('a stalled chain is reported even if nodes behind one URL alternate', async () => {
  const { chain, watch, pass, show } = createWatched({ stillAfterS: 60, names: ['first'] });
  await pass(3);
  const { state } = chain;
  chain.reorg(1, []);
  const replaced = chain.state.slice(0, -1);
  let polls = 0;
  show('first', () => [state, state.slice(0, -1), replaced][polls++ % 3]!);
  await pass(13, false);
  expect(watch.stall).toMatchObject({ ms: 70_000 });
});

it('a single wrong block number hides a stall for at most ten minutes', async () => {
  const { watch, pass, chain, show, thaw } = createWatched({ stillAfterS: 60, names: ['first'] });
  await pass(3);
  show('first', () =>
    Array.from({ length: 9_000 }, () => chain.state.at(-1)!).map((block, number) => ({ ...block, number })),
  );
  await pass(1);
  thaw('first');
  await pass(119);
  expect(watch.stall).not.toBeNull();
  await pass(3);
  expect(watch.stall).toBeNull();
  await pass(20, false);
  expect(watch.stall).not.toBeNull();
});

it('a chain with stillAfterS 0 is never reported as stalled', async () => {
  const { watch, pass } = createWatched({ stillAfterS: 0 });
  await pass(1_000, false);
  expect(watch.stall).toBeNull();
});

it('a chain is not stalled while no node responds', async () => {
  const { nodes, watch, pass, clock } = createWatched();
  await pass(3);
  for (const node of nodes)
    Object.assign(node, { block: () => Promise.reject(new NodeFault('unreachable', 'it cannot be reached')) });
  await pass(30);
  expect(watch.stall).toBeNull();
  expect(clock.nowMs).toBeGreaterThan(120_000);
});

it.each([
  ['with another id', { chainId: async () => 1 }],
  ['that was recreated under the same id', {}],
])('blocks from a node of another chain %s are ignored, and do not hide a stall', async (_what, over) => {
  const { nodes, watch, pass } = createWatched();
  const other = createWatched({ salt: 'again' });
  Object.assign(nodes[0]!, other.nodes[0], over);
  for (let block = 0; block < 50; block++) other.chain.mine();
  await pass(3);
  for (let poll = 0; poll < 24; poll++) {
    other.chain.mine();
    await pass(1, false);
  }
  expect(watch.heads.map(({ head }) => head)).toEqual([null, 3]);
  expect(lagging(watch)).toEqual([]);
  expect(watch.stall).toEqual({ ms: 125_000, block: 3 });
});

it('a node is checked again after it was unavailable, and blocks of another chain are forgotten', async () => {
  const { nodes, watch, pass } = createWatched();
  await pass(3);
  const { block } = nodes[0]!;
  const other = createWatched({ salt: 'again' });
  Object.assign(nodes[0]!, { block: () => Promise.reject(new NodeFault('unreachable', 'it cannot be reached')) });
  await pass(1);
  Object.assign(nodes[0]!, { block: other.nodes[0]!.block });
  await pass(1);
  expect(watch.heads.map(({ head }) => head)).toEqual([null, 5]);
  Object.assign(nodes[0]!, { block });
  await pass(1);
  expect(watch.heads.map(({ head }) => head)).toEqual([6, 6]);
});

it('nodes are not used before the chain is known, and then within a second', async () => {
  const { chain, nodes, clock } = createWatched();
  const identity = new ChainIdentity(CHAIN.chainId);
  const watch = new HeadWatch({ chain: CHAIN, identity, nodes, nowMs: () => clock.nowMs });
  expect(await watch.poll(nodes[0]!)).toBe(1_000);
  expect(watch.heads[0]!.head).toBeNull();
  identity.restore(chain.state[0]!.hash);
  await watch.poll(nodes[0]!);
  expect(watch.heads[0]!.head).toBe(0);
});

it('a node is not polled before its Retry-After, but within a minute', async () => {
  const { nodes, watch } = createWatched();
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

const createFinal = (names: string[]) => {
  const own = createWatched({ names });
  const chain = { ...CHAIN, stillAfterS: 60, finality: 'finalized' as const };
  const watch = new HeadWatch({ chain, identity: own.identity, nodes: own.nodes, nowMs: () => own.clock.nowMs });
  const poll = async (finals: readonly (number | null)[], polls: number) => {
    for (let n = 0; n < polls; n++) {
      own.chain.mine([transferDraft(1, [0, 1], own.chain.state.length)]);
      for (const [index, node] of own.nodes.entries()) {
        const number = finals[index]!;
        const head = own.chain.state.length;
        const final = number === null ? null : { number, hash: `0x${number}` };
        const first = own.chain.state[0]!;
        const block = async (at: unknown) =>
          at === 0 ? first : at === 'finalized' ? final : { number: head, hash: `0x${head}` };
        await watch.poll(Object.assign(node, { block }));
      }
      own.clock.nowMs += 5_000;
    }
  };
  return { watch, poll };
};

it('a node whose final block stops while its latest block moves is used last', async () => {
  for (const stuck of [1, null]) {
    const { watch, poll } = createFinal(['first', 'second']);
    await poll([stuck, 9], 9);
    expect(lagging(watch)).toEqual(['first']);
  }
});

it('a chain is stalled when no node has a new final block for half an hour', async () => {
  const { watch, poll } = createFinal(['first']);
  await poll([7], 359);
  expect(watch.stall).toBeNull();
  await poll([7], 1);
  expect(watch.stall).toEqual({ ms: 1_800_000, block: 7 });
  await poll([8], 1);
  expect(watch.stall).toBeNull();
});
