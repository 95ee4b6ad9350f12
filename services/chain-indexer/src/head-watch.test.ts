import { type ChainNode, NodeFault } from '@playline/chain';
import { describe, expect, it } from 'vitest';
import { HeadWatch } from './head-watch.ts';
import { CHAIN, createTestLane, stepToEnd } from './test/lanes.ts';
import { createStateNode, MemoryChain, transferDraft } from './test/memory-chain.ts';
import { MemoryIndexLogs } from './test/memory-index-logs.ts';

const DEPTH = 4;

/** A chain with two nodes, one of which may stop following it, and a clock that the test moves. */
function createWatched({ stillAfterS = 120, names = ['first', 'second'] } = {}) {
  const chain = new MemoryChain(DEPTH);
  const clock = { nowMs: 0 };
  /** The chain state that a node serves; the whole chain unless set. */
  const shown = new Map<string, () => MemoryChain['state']>();
  const nodes: readonly ChainNode[] = names.map((name) =>
    createStateNode(name, DEPTH, () => (shown.get(name) ?? (() => chain.state))()),
  );
  const watch = new HeadWatch({ chain: { ...CHAIN, stillAfterS }, nodes, nowMs: () => clock.nowMs });
  /** Moves the clock by five seconds per look; each adds a block unless `isMining` is false. */
  const pass = async (looks: number, isMining = true) => {
    for (let look = 0; look < looks; look++) {
      if (isMining) chain.mine([transferDraft(1, [0, 1], chain.state.length)]);
      for (const node of nodes) await watch.look(node);
      clock.nowMs += 5_000;
    }
  };
  const freeze = (name: string) => {
    const { state } = chain;
    shown.set(name, () => state);
  };
  return { chain, clock, nodes, watch, pass, freeze, thaw: (name: string) => void shown.delete(name) };
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
    expect(watch.standstill).toBeNull();
    await pass(1, false);
    expect(watch.standstill).toEqual({ ms: 60_000, block: 3 });
    await pass(1);
    expect(watch.standstill).toBeNull();
  });

  it('is never reported where blocks are made only when there is a transaction', async () => {
    const { watch, pass } = createWatched({ stillAfterS: 0 });
    await pass(1_000, false);
    expect(watch.standstill).toBeNull();
  });

  it('is not reported while no node answers: that is another fault', async () => {
    const { nodes, watch, pass, clock } = createWatched();
    await pass(3);
    for (const node of nodes)
      Object.assign(node, { block: () => Promise.reject(new NodeFault('unreachable', 'it cannot be reached')) });
    await pass(30);
    expect(watch.standstill).toBeNull();
    expect(clock.nowMs).toBeGreaterThan(120_000);
  });
});

it('the blocks of a node of another chain are ignored', async () => {
  const { nodes, watch, pass } = createWatched();
  const [first] = nodes;
  Object.assign(first!, { chainId: async () => 1, block: async () => ({ number: 9_000, hash: '0x' }) });
  await pass(20);
  expect(watch.heads.map(({ head }) => head)).toEqual([null, 20]);
  expect(lagging(watch)).toEqual([]);
});

it('a node that says when to ask again is not asked before, but within a minute at the latest', async () => {
  const { nodes, watch } = createWatched();
  const [first] = nodes;
  const busy = (retryAfterMs: number | null) => async () => {
    throw new NodeFault('busy', 'asked too often', retryAfterMs);
  };
  for (const [asked, waits] of [
    [null, 5_000],
    [20_000, 20_000],
    [9_000_000, 60_000],
  ] as const) {
    Object.assign(first!, { block: busy(asked) });
    expect(await watch.look(first!)).toBe(waits);
  }
});

describe('a node whose final block stands still while its latest moves', () => {
  const createFinal = (names: string[]) => {
    const own = createWatched({ names });
    const chain = { ...CHAIN, stillAfterS: 60, finality: 'finalized' as const };
    const watch = new HeadWatch({ chain, nodes: own.nodes, nowMs: () => own.clock.nowMs });
    const look = async (finals: readonly (number | null)[], looks: number) => {
      for (let n = 0; n < looks; n++) {
        own.chain.mine([transferDraft(1, [0, 1], own.chain.state.length)]);
        for (const [index, node] of own.nodes.entries()) {
          const number = finals[index]!;
          const head = own.chain.state.length;
          const final = number === null ? null : { number, hash: `0x${number}` };
          const block = async (at: unknown) => (at === 'finalized' ? final : { number: head, hash: `0x${head}` });
          await watch.look(Object.assign(node, { block }));
        }
        own.clock.nowMs += 5_000;
      }
    };
    return { watch, look };
  };

  it('is asked last, also when it has none', async () => {
    for (const stuck of [1, null]) {
      const { watch, look } = createFinal(['first', 'second']);
      await look([stuck, 9], 9);
      expect(lagging(watch)).toEqual(['first']);
    }
  });

  it('is told when no other has a new one for half an hour', async () => {
    const { watch, look } = createFinal(['first']);
    await look([7], 359);
    expect(watch.standstill).toBeNull();
    await look([7], 1);
    expect(watch.standstill).toEqual({ ms: 1_800_000, block: 7 });
    await look([8], 1);
    expect(watch.standstill).toBeNull();
  });
});
