import { type ChainNode, type ContractCall, NodeFault } from '@playline/chain';
import { expect, it } from 'vitest';
import { createStateNode, MemoryChain } from '../test/memory-chain.ts';
import { NewTokens } from './new-tokens.ts';

const tokenAt = (number: number) => `0x${number.toString(16).padStart(40, '0')}`;
const timeOut = () => Promise.reject(new NodeFault('timeout', 'the request timed out'));

function createTokens(hostile: readonly number[], { fail = timeOut as () => Promise<never>, waitMs = 1_000 } = {}) {
  const clock = { nowMs: 0 };
  const requests: (readonly string[])[] = [];
  const state = { hostile: new Set(hostile.map(tokenAt)), known: [] as string[], fail };
  const chain = new MemoryChain(4);
  const node: ChainNode = {
    ...createStateNode('test', 4, () => chain.state),
    calls: async (calls: readonly ContractCall[]) => {
      const contracts = [...new Set(calls.map(({ to }) => to))];
      requests.push(contracts);
      return contracts.some((contract) => state.hostile.has(contract)) ? state.fail() : calls.map(() => null);
    },
  };
  const faults: string[] = [];
  const onFault = (_node: ChainNode, fault: Error) =>
    void faults.push(fault instanceof NodeFault ? fault.kind : fault.message);
  const tokens = new NewTokens({ chain: 'demo-chain', onFault, nowMs: () => clock.nowMs, waitMs });
  const round = async (seen: readonly number[] = []) => {
    const described = await tokens.describe(node, seen.map(tokenAt), async () => state.known);
    const names = described.map(({ contractAddress }) => `0x${contractAddress.toString('hex')}`);
    for (const name of names) tokens.forget(name);
    return names.sort();
  };
  return { clock, requests, state, faults, round };
}
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);

it('a contract that cannot be described does not delay other tokens', async () => {
  const { clock, round } = createTokens(range(1_000, 1_100));
  for (let step = 0; step <= 100; step++) {
    const honest = [2 * step, 2 * step + 1].map((number) => number + 1);
    expect(await round([honest[0]!, 1_000 + step, honest[1]!])).toEqual(honest.map(tokenAt));
    clock.nowMs += 30_000;
  }
});

it('a contract that cannot be described is requested alone at growing intervals until it is described', async () => {
  const { clock, requests, state, round } = createTokens([1]);
  const atMs: number[] = [];
  for (await round([1, 2]); clock.nowMs < 24 * 3_600_000; clock.nowMs += 5_000) {
    const before = requests.length;
    expect(await round()).toEqual([]);
    if (requests.length > before) atMs.push(clock.nowMs);
  }
  expect(requests.slice(2).every((contracts) => contracts.length === 1)).toBe(true);
  const waits = atMs.slice(1).map((at, index) => at - atMs[index]!);
  expect([atMs[0], ...waits.slice(0, 3)]).toEqual([15_000, 30_000, 60_000, 120_000]);
  expect(Math.max(...waits)).toBe(3_600_000);
  state.hostile.clear();
  clock.nowMs += 3_600_000;
  expect(await round()).toEqual([tokenAt(1)]);
  expect(await round([1])).toEqual([]);
});

it('activities do not wait for late descriptions, which are returned later', async () => {
  const response = Promise.withResolvers<never>();
  const { clock, round } = createTokens([1], { fail: () => response.promise, waitMs: 10 });
  expect(await round([1, 2])).toEqual([]);
  expect(await round([3])).toEqual([]);
  response.reject(new NodeFault('timeout', 'the request timed out'));
  const found: string[] = [];
  while (found.length < 2) found.push(...(await round()));
  expect(found.sort()).toEqual([2, 3].map(tokenAt));
  clock.nowMs += 15_000;
  expect(await round()).toEqual([]);
});

it('a fault in one call delays only the affected token', async () => {
  const chain = new MemoryChain(4);
  const fault = new NodeFault('unreachable', 'an unknown error');
  const node: ChainNode = {
    ...createStateNode('test', 4, () => chain.state),
    calls: async (calls: readonly ContractCall[]) => calls.map(({ to }) => (to === tokenAt(2) ? fault : null)),
  };
  const tokens = new NewTokens({ chain: 'demo-chain', onFault: () => {}, nowMs: () => 0 });
  const described = await tokens.describe(node, range(1, 3).map(tokenAt), async () => []);
  expect(described.map(({ contractAddress }) => contractAddress.at(-1))).toEqual([1, 3]);
});

it('an internal error is reported and delays only the affected token', async () => {
  const fail = () => Promise.reject(new RangeError('no such byte'));
  const { clock, faults, state, round } = createTokens([1], { fail });
  const found = new Set(await round([1, 2]));
  for (const name of await round([3])) found.add(name);
  expect([...found].sort()).toEqual([2, 3].map(tokenAt));
  expect(faults).toEqual(['no such byte', 'no such byte']);
  state.hostile.clear();
  clock.nowMs += 15_000;
  expect(await round()).toEqual([tokenAt(1)]);
});

it('a busy node receives no requests until its Retry-After', async () => {
  const busy = () => Promise.reject(new NodeFault('busy', 'rate limited', 20_000));
  const { clock, requests, state, round } = createTokens([1], { fail: busy });
  expect(await round([1, 2])).toEqual([]);
  state.hostile.clear();
  clock.nowMs += 19_000;
  expect(await round()).toEqual([]);
  clock.nowMs += 1_000;
  expect(await round()).toEqual([1, 2].map(tokenAt));
  expect(requests).toEqual([[1, 2].map(tokenAt), [1, 2].map(tokenAt)]);
});

it('a published token is neither requested nor returned, even if it was published during the request', async () => {
  const { requests, state, round } = createTokens([]);
  state.known = [tokenAt(1)];
  expect(await round([1, 2])).toEqual([tokenAt(2)]);
  expect(requests).toEqual([[tokenAt(2)]]);
  const response = Promise.withResolvers<never>();
  const slow = createTokens([3], { fail: () => response.promise, waitMs: 10 });
  expect(await slow.round([3, 4])).toEqual([]);
  slow.state.known = [tokenAt(3), tokenAt(4)];
  response.reject(new NodeFault('timeout', 'the request timed out'));
  for (let poll = 0; poll < 5; poll++) expect(await slow.round([4])).toEqual([]);
});

it('all of 10,000 new tokens in one block are described', async () => {
  const { requests, round } = createTokens([]);
  const found = [...(await round(range(1, 10_000)))];
  while (found.length < 10_000) found.push(...(await round()));
  expect(new Set(found).size).toBe(10_000);
  expect(requests.length).toBe(625);
});
