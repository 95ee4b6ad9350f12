import { type ChainNode, NodeFault } from '@playline/chain';
import { describe, expect, it } from 'vitest';
import { HeadWatch } from './head-watch.ts';
import { ChainIdentity } from './steps/chain-identity.ts';
import { CHAIN, createTestLane, stepToEnd } from './test/lanes.ts';
import { createStateNode, MemoryChain, transferDraft } from './test/memory-chain.ts';
import { MemoryIndexLogs } from './test/memory-index-logs.ts';

const DEPTH = 4;

/** A chain with two nodes, one of which may stop following it, and a clock that the test moves. */
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
  /** Moves the clock by five seconds per look; each adds a block unless `isMining` is false. */
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

describe('a node that answers but no longer follows its chain', () => {
  it('lags while it does not have what others had half a minute ago, and no longer once it has', async () => {
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

  it('is asked after the others, so that indexing goes on', async () => {
    const { chain, nodes, watch, pass, freeze } = createWatched();
    const logs = new MemoryIndexLogs();
    const own = createTestLane(nodes, logs, { lags: (node) => watch.lags(node) });
    await pass(3);
    freeze('first');
    await pass(12);
    await stepToEnd(own);
    expect(logs.activities).toHaveLength(chain.finalLogs().length);
  });

  it('is asked after the others when it is silent, even if it never answered and there are no new blocks', async () => {
    for (const isMining of [true, false]) {
      const { nodes, watch, pass } = createWatched();
      const away = () => Promise.reject(new NodeFault('late', 'it does not answer in time'));
      const { block, chainId } = nodes[0]!;
      Object.assign(nodes[0]!, { block: away, chainId: away });
      await pass(6, isMining);
      expect(lagging(watch)).toEqual(['first']);
      Object.assign(nodes[0]!, { block, chainId });
      await pass(1, isMining);
      expect(lagging(watch)).toEqual([]);
    }
  });

  it('does not lag because it is silent when no other node answers', async () => {
    const { nodes, watch, pass } = createWatched();
    for (const node of nodes)
      Object.assign(node, { block: () => Promise.reject(new NodeFault('unreachable', 'it cannot be reached')) });
    await pass(30);
    expect(lagging(watch)).toEqual([]);
  });

  it('changes nothing when all of them have stopped, or when it is the only one', async () => {
    const { watch, pass, freeze } = createWatched();
    await pass(3);
    for (const name of ['first', 'second']) freeze(name);
    await pass(20);
    expect(lagging(watch)).toEqual([]);
    const single = createWatched({ names: ['first'] });
    await single.pass(20, false);
    expect(lagging(single.watch)).toEqual([]);
  });

  it('does not lag because of a reorganisation that makes its chain shorter for a moment', async () => {
    const { chain, watch, pass } = createWatched();
    await pass(20);
    chain.states.push(chain.state.slice(0, -2));
    await pass(1, false);
    expect(lagging(watch)).toEqual([]);
  });
});

describe('a chain none of whose nodes gets new blocks', () => {
  it('is reported after the configured time, with the latest block, until a node has a new block', async () => {
    const { watch, pass } = createWatched({ stillAfterS: 60 });
    await pass(3);
    await pass(10, false);
    expect(watch.stall).toBeNull();
    await pass(1, false);
    expect(watch.stall).toEqual({ ms: 60_000, block: 3 });
    await pass(1);
    expect(watch.stall).toBeNull();
  });

  it('is reported while another node catches up from far behind, and gets new blocks all the time', async () => {
    const { chain, watch, pass, freeze } = createWatched({ stillAfterS: 60, syncing: 'second' });
    for (let block = 0; block < 1_000; block++) chain.mine();
    await pass(3);
    freeze('first');
    await pass(12);
    expect(watch.stall).toEqual({ ms: 65_000, block: 1_003 });
    expect(watch.heads[1]!.head).toBeLessThan(100);
  });

  it('is reported although nodes behind one address have different latest blocks, and take turns', async () => {
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

  it('is reported because of a wrong number of one answer for ten minutes at most', async () => {
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

  it('is never reported where blocks are made only when there is a transaction', async () => {
    const { watch, pass } = createWatched({ stillAfterS: 0 });
    await pass(1_000, false);
    expect(watch.stall).toBeNull();
  });

  it('is not reported while no node answers: that is another fault', async () => {
    const { nodes, watch, pass, clock } = createWatched();
    await pass(3);
    for (const node of nodes)
      Object.assign(node, { block: () => Promise.reject(new NodeFault('unreachable', 'it cannot be reached')) });
    await pass(30);
    expect(watch.stall).toBeNull();
    expect(clock.nowMs).toBeGreaterThan(120_000);
  });
});

describe('the blocks of a node of another chain', () => {
  it.each([
    ['with another id', { chainId: async () => 1 }],
    ['that was recreated under the same id', {}],
  ])('%s are ignored, and do not hide that the chain stands still', async (_what, over) => {
    const { nodes, watch, pass } = createWatched();
    const other = createWatched({ salt: 'anew' });
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

  it('are ignored when the node was away meanwhile, and those that it had before are forgotten', async () => {
    const { nodes, watch, pass } = createWatched();
    await pass(3);
    const { block } = nodes[0]!;
    const other = createWatched({ salt: 'anew' });
    Object.assign(nodes[0]!, { block: () => Promise.reject(new NodeFault('unreachable', 'it cannot be reached')) });
    await pass(1);
    Object.assign(nodes[0]!, { block: other.nodes[0]!.block });
    await pass(1);
    expect(watch.heads.map(({ head }) => head)).toEqual([null, 5]);
    Object.assign(nodes[0]!, { block });
    await pass(1);
    expect(watch.heads.map(({ head }) => head)).toEqual([6, 6]);
  });

  it('are not used while the chain is not known yet, and then within a second', async () => {
    const { chain, nodes, clock } = createWatched();
    const identity = new ChainIdentity(CHAIN.chainId);
    const watch = new HeadWatch({ chain: CHAIN, identity, nodes, nowMs: () => clock.nowMs });
    expect(await watch.poll(nodes[0]!)).toBe(1_000);
    expect(watch.heads[0]!.head).toBeNull();
    identity.restore(chain.state[0]!.hash);
    await watch.poll(nodes[0]!);
    expect(watch.heads[0]!.head).toBe(0);
  });
});

it('a node that says when to ask again is not asked before, but within a minute at the latest', async () => {
  const { nodes, watch } = createWatched();
  const [first] = nodes;
  const busy = (retryAfterMs: number | null) => async () => {
    throw new NodeFault('busy', 'asked too often', retryAfterMs);
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

describe('a node whose final block stands still while its latest moves', () => {
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
    return { watch, look: poll };
  };

  it('is asked last, also when it has none', async () => {
    for (const stuck of [1, null]) {
      const { watch, look: poll } = createFinal(['first', 'second']);
      await poll([stuck, 9], 9);
      expect(lagging(watch)).toEqual(['first']);
    }
  });

  it('is told when no other has a new one for half an hour', async () => {
    const { watch, look: poll } = createFinal(['first']);
    await poll([7], 359);
    expect(watch.stall).toBeNull();
    await poll([7], 1);
    expect(watch.stall).toEqual({ ms: 1_800_000, block: 7 });
    await poll([8], 1);
    expect(watch.stall).toBeNull();
  });
});
