import { type ChainNode, type ContractCall, NodeFault } from '@playline/chain';
import { describe, expect, it } from 'vitest';
import { createStateNode, MemoryChain } from '../test/memory-chain.ts';
import { NewTokens } from './new-tokens.ts';

const tokenAt = (number: number) => `0x${number.toString(16).padStart(40, '0')}`;
const late = () => Promise.reject(new NodeFault('late', 'it does not answer in time'));

/** Tokens of a node, some of whose contracts are never answered for. */
function createTokens(slow: readonly number[], { fail = late, takesMs = 0 } = {}) {
  const clock = { nowMs: 0 };
  const asked: (readonly string[])[] = [];
  const state = { slow: new Set(slow.map(tokenAt)), known: [] as string[] };
  const chain = new MemoryChain(4);
  const node: ChainNode = {
    ...createStateNode('test', 4, () => chain.state),
    calls: async (calls: readonly ContractCall[]) => {
      const contracts = [...new Set(calls.map(({ to }) => to))];
      asked.push(contracts);
      clock.nowMs += takesMs;
      return contracts.some((contract) => state.slow.has(contract)) ? fail() : calls.map(() => null);
    },
  };
  const faults: string[] = [];
  const onFault = (_node: ChainNode, { kind }: NodeFault) => void faults.push(kind);
  const tokens = new NewTokens({ chain: 'demo-chain', onFault, nowMs: () => clock.nowMs });
  /** Describes and publishes. */
  const round = async (seen: readonly number[] = []) => {
    const described = await tokens.describe(node, seen.map(tokenAt), async () => state.known);
    const names = described.map(({ contractAddress }) => `0x${contractAddress.toString('hex')}`);
    for (const name of names) tokens.forget(name);
    return names;
  };
  return { clock, asked, state, faults, round };
}
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);

describe('a contract for which the node does not answer', () => {
  it('delays the tokens that were asked about with it by half a minute, and no others', async () => {
    const { clock, faults, round } = createTokens([20]);
    expect(await round(range(1, 40))).toEqual(range(1, 16).map(tokenAt));
    expect(await round()).toEqual([]);
    clock.nowMs += 30_000;
    const together = [...range(33, 40), ...range(50, 60)];
    expect(await round(range(50, 60))).toEqual([...together, ...range(17, 19)].map(tokenAt));
    clock.nowMs += 30_000;
    expect(await round()).toEqual(range(21, 32).map(tokenAt));
    expect(faults).toEqual(['late', 'late']);
  });

  it('is asked about again ever less often, and described once the node answers', async () => {
    const { clock, asked, state, round } = createTokens([1]);
    const atMs: number[] = [];
    for (await round([1]); clock.nowMs < 24 * 3_600_000; clock.nowMs += 10_000) {
      const before = asked.length;
      await round();
      if (asked.length > before) atMs.push(clock.nowMs);
    }
    const waits = atMs.slice(1).map((at, index) => at - atMs[index]!);
    expect(waits.slice(0, 4)).toEqual([60_000, 120_000, 240_000, 480_000]);
    expect(Math.max(...waits)).toBe(3_600_000);
    state.slow.clear();
    clock.nowMs += 3_600_000;
    expect(await round()).toEqual([tokenAt(1)]);
    expect(await round([1])).toEqual([]);
  });

  it('costs one failed question in half a minute, however many such contracts there are', async () => {
    const { clock, faults, round } = createTokens(range(1, 1_000));
    await round(range(1, 1_000));
    for (let second = 0; second < 300; second++) {
      clock.nowMs += 1_000;
      await round(range(1, 1_000));
    }
    expect(faults.length).toBeLessThanOrEqual(11);
  });
});

it('a busy node is asked about the same tokens together again', async () => {
  const busy = () => Promise.reject(new NodeFault('busy', 'it is asked too often'));
  const { clock, asked, state, round } = createTokens([1], { fail: busy });
  expect(await round([1, 2])).toEqual([]);
  state.slow.clear();
  clock.nowMs += 30_000;
  expect(await round()).toEqual([1, 2].map(tokenAt));
  expect(asked).toEqual([[1, 2].map(tokenAt), [1, 2].map(tokenAt)]);
});

it('a token that the log has is neither asked about nor described', async () => {
  const { asked, state, round } = createTokens([]);
  state.known = [tokenAt(1)];
  expect(await round([1, 2])).toEqual([tokenAt(2)]);
  expect(asked).toEqual([[tokenAt(2)]]);
});

it('questions about tokens end after five seconds, and go on with the next batch', async () => {
  const { round } = createTokens([], { takesMs: 2_000 });
  expect(await round(range(1, 160))).toEqual(range(1, 48).map(tokenAt));
  expect(await round()).toEqual(range(49, 96).map(tokenAt));
});
