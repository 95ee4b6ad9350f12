import { NodeFault } from '@playline/chain';
import { expect, it } from 'vitest';
import { NodeRefusal } from '../chain/json-rpc.ts';
import type { ChainNode } from '../ports.ts';
import { TRANSFER_SINGLE } from '../steps/settle-nonces.ts';
import { createWorld, DEPTH } from '../test/lane-world.ts';
import { MemoryChain } from '../test/memory-chain.ts';
import { MemoryNode } from '../test/memory-node.ts';
import { CONTRACTS, SHIELDS, SWORDS } from '../test/mint-requests.ts';

const UNRUNNABLE = { kind: 'unrunnable', message: 'The contract cannot execute the call.', isCertain: true } as const;
const withOverrides = (node: ChainNode, overridesOf: (node: ChainNode) => Partial<ChainNode>): ChainNode => ({
  ...node,
  ...overridesOf(node),
});
const isMintOf = (contract: string, { to, data }: { to: string; data: string }) => to === contract && data.length > 200;

type World = ReturnType<typeof createWorld>;
async function runTurns(
  { time, mine }: World,
  lane: Awaited<ReturnType<World['takeOver']>>,
  turns = 30,
): Promise<string[]> {
  const errors: string[] = [];
  for (let at = 0; at < turns; at++) {
    time.ms += 10_000;
    mine(1);
    await lane.turn().catch((fault: Error) => errors.push(fault.message));
  }
  return errors;
}

it('no transaction becomes final on a node with a different final block', async () => {
  const other = new MemoryNode(new MemoryChain(CONTRACTS), { depth: DEPTH });
  const fork = { isActive: false };
  // Simulates two nodes behind one URL. The client cannot choose between them.
  const world = createWorld((node) => [
    withOverrides(node, () => ({
      receiptOf: (hash) => (fork.isActive ? other : node).receiptOf(hash),
      blockHashOf: (number) => (fork.isActive ? other : node).blockHashOf(number),
      viewOf: (hash, blocks) => (fork.isActive ? other : node).viewOf(hash, blocks),
    })),
  ]);
  const { log, mine, last, tokens, takeOver, request } = world;
  const lane = await takeOver();
  await lane.accept([request('a')]);
  await lane.turn();
  other.mine();
  await other.send(log.transactions[0]!.signedBytes);
  other.mine();
  mine(DEPTH + 2);
  fork.isActive = true;
  await expect(lane.turn()).rejects.toThrow(/a different final block/);
  expect(last()).toMatchObject({ status: 'pending', nonce: 0 });
  fork.isActive = false;
  await lane.turn();
  expect([last().status, tokens()]).toEqual(['succeeded', 1]);
});

it('a lane uses one node for a whole turn, and repeats the turn with the next node if the node fails', async () => {
  const requested: string[] = [];
  const watch = (name: string, node: ChainNode): ChainNode =>
    new Proxy(node, {
      get: (_node, request: keyof ChainNode) => {
        requested.push(name);
        if (name === 'first' && request === 'receiptOf') throw new NodeFault('busy', 'rate limited');
        return node[request];
      },
    });
  const { takeOver, request, mine, last } = createWorld((node) => [watch('first', node), watch('second', node)]);
  const lane = await takeOver();
  await lane.accept([request('a')]);
  await lane.turn();
  mine(DEPTH + 1);
  requested.splice(0);
  await lane.turn();
  expect(requested.join(' ')).toMatch(/^(first )+(second ?)+$/);
  expect(last()).toMatchObject({ status: 'succeeded' });
});

it('assets wait while the node is behind the last final block, and resume once the node has caught up', async () => {
  const old = { isActive: false };
  const world = createWorld((node) => [
    withOverrides(node, () => ({
      head: async (known) =>
        old.isActive ? { ...(await node.head(known)), number: 1, finalized: 0 } : node.head(known),
    })),
  ]);
  const { mine, last, takeOver, request } = world;
  const lane = await takeOver();
  await lane.accept([request('a', { tokenId: '1' })]);
  await lane.turn();
  mine(10);
  await lane.turn();
  old.isActive = true;
  await lane.accept([request('b', { tokenId: '2' })]);
  expect(await runTurns(world, lane, 3)).toHaveLength(3);
  expect(last('b')).toMatchObject({ stage: 'waiting', reason: expect.stringContaining('is behind final block') });
  expect(lane.pendingSinceMs).not.toBeNull();
  old.isActive = false;
  await lane.turn();
  expect(last('b')).toMatchObject({ stage: 'logged', reason: null });
});

it('a lane skips a node with the wrong chain id', async () => {
  const other = (node: ChainNode) => withOverrides(node, () => ({ chainId: async () => 1 }));
  const both = createWorld((node) => [other(node), node]);
  const lane = await both.takeOver();
  await lane.accept([both.request('a')]);
  await lane.turn();
  expect(both.last()).toMatchObject({ stage: 'logged' });
  const none = createWorld((node) => [other(node)]);
  const waiting = await none.takeOver();
  await waiting.accept([none.request('a')]);
  await waiting.turn();
  expect(none.last()).toMatchObject({ stage: 'waiting', reason: expect.stringContaining('is on chain 1') });
  // The worker logs the fault and marks the lane as degraded.
  expect(waiting.faults.map(String)).toEqual([expect.stringContaining('is on chain 1')]);
});

it('an asset fails if it cannot be minted even on its own, and all other assets are minted', async () => {
  const world = createWorld((node) => [
    withOverrides(node, () => ({
      // The contract cannot mint more than two assets together, and cannot mint for this owner.
      call: async (call) =>
        isMintOf(SWORDS, call) && (call.data.includes('dead') || call.data.length > 1_200)
          ? UNRUNNABLE
          : node.call(call),
    })),
  ]);
  const lane = await world.takeOver();
  const owner = `0x${'dead'.repeat(10)}`;
  await lane.accept([
    ...[world.request('bad', { owner }), world.request('other', { contract: SHIELDS })],
    ...Array.from({ length: 6 }, (_, at) => world.request(`a${at}`)),
  ]);
  expect(await runTurns(world, lane)).toEqual([]);
  expect(world.last('bad')).toMatchObject({ status: 'failed', error: UNRUNNABLE.message });
  expect(world.tokens()).toBe(7);
});

it('an asset does not fail if the node is too busy, or if a repeated call succeeds', async () => {
  let count = 0;
  const world = createWorld((node) => [
    withOverrides(node, () => ({
      call: async (call) => {
        if (isMintOf(SWORDS, call)) return ++count % 2 === 0 ? node.call(call) : UNRUNNABLE;
        return isMintOf(SHIELDS, call) ? { ...UNRUNNABLE, isCertain: false } : node.call(call);
      },
    })),
  ]);
  const lane = await world.takeOver();
  await lane.accept([world.request('a'), world.request('b', { contract: SHIELDS })]);
  await runTurns(world, lane, 5);
  expect(world.log.states.filter(({ status }) => status === 'failed')).toEqual([]);
  expect(world.last('b')).toMatchObject({ stage: 'waiting', reason: UNRUNNABLE.message });
});

it('other collections continue if the node fails for one collection, whose states contain the reason', async () => {
  const world = createWorld((node) => [
    withOverrides(node, () => ({
      call: async (call) => {
        if (call.to === SWORDS) throw new NodeFault('unreachable', 'the node rejected the call');
        return node.call(call);
      },
    })),
  ]);
  const lane = await world.takeOver();
  await lane.accept([world.request('a'), world.request('b', { contract: SHIELDS })]);
  expect(await runTurns(world, lane)).toEqual([]);
  expect(world.last('a')).toMatchObject({ stage: 'waiting', reason: expect.stringContaining('rejected the call') });
  expect(world.last('b')).toMatchObject({ status: 'succeeded' });
  expect(lane.faults).toHaveLength(1);
});

it("other collections continue if one collection's event or receipt cannot be decoded", async () => {
  const world = createWorld((node) => {
    const { receiptOf } = node;
    return [
      Object.assign(node, {
        receiptOf: async (hash: string) => {
          const receipt = await receiptOf(hash);
          if (receipt?.logs.some(({ address }) => address === SHIELDS))
            throw new Error('the receipt cannot be decoded');
          const broken = ({ topics, ...log }: NonNullable<typeof receipt>['logs'][number]) => ({
            ...log,
            topics: [TRANSFER_SINGLE, topics[1]!, topics[1]!, topics[2]!],
            data: '0x',
          });
          return receipt && { ...receipt, logs: receipt.logs.map(broken) };
        },
      }),
    ];
  });
  const lane = await world.takeOver();
  await lane.accept([world.request('a'), world.request('b', { contract: SHIELDS })]);
  expect(await runTurns(world, lane)).toEqual([]);
  expect(world.last('a')).toMatchObject({ status: 'succeeded', activityId: null });
  expect(world.last('b')).toMatchObject({ status: 'pending', reason: expect.stringContaining('cannot be read') });
});

it.each([
  ['funds run out', (node: MemoryNode) => Object.assign(node, { balance: 1n }), /does not have enough funds/],
  [
    'fees reach the maximum',
    (node: MemoryNode) => Object.assign(node, { baseFee: 1_000n }),
    /its fees are at the maximum/,
  ],
])(
  'assets wait with a reason and resume without an operator if %s after a transaction was signed',
  async (_what, arrange, reason) => {
    const world = createWorld(undefined, { feeMax: 40n, priorityFeeMax: 40n });
    const { node, last } = world;
    const lane = await world.takeOver();
    await lane.accept([world.request('a')]);
    await lane.turn();
    node.losePool();
    arrange(node);
    await runTurns(world, lane, 25);
    expect(last()).toMatchObject({ stage: 'waiting', nonce: 0, reason: expect.stringMatching(reason) });
    Object.assign(node, { balance: 10n ** 21n, baseFee: 10n });
    await runTurns(world, lane, DEPTH + 3);
    expect(last()).toMatchObject({ status: 'succeeded', reason: null });
  },
);

it('assets wait with a reason if the node rejects both their bytes and the no-op', async () => {
  const world = createWorld((node) => [withOverrides(node, () => ({ send: async () => ({ kind: 'refused' }) }))]);
  const lane = await world.takeOver();
  await lane.accept([world.request('a')]);
  await runTurns(world, lane, 3);
  expect(world.last()).toMatchObject({ stage: 'waiting', reason: expect.stringContaining('the replacement') });
});

it.each(['unfunded', 'refused', 'nonce-used'] as const)(
  'a lane does not raise fees after the outcome "%s", and writes the reason once',
  async (kind) => {
    const world = createWorld((node) => [withOverrides(node, () => ({ send: async () => ({ kind }) }))]);
    const lane = await world.takeOver();
    await lane.accept([world.request('a')]);
    await runTurns(world, lane, 5);
    expect(world.last()).toMatchObject({ stage: 'waiting', nonce: 0 });
    const { states, transactions } = world.log;
    const before = [states.length, transactions.length];
    await runTurns(world, lane, 30);
    expect([states.length, transactions.length]).toEqual(before);
  },
);

it('a lane writes a new node fault as the reason at most once a minute', async () => {
  let count = 0;
  const world = createWorld((node) => [
    withOverrides(node, () => ({ head: () => Promise.reject(new NodeFault('unreachable', `fault ${count++}`)) })),
  ]);
  const lane = await world.takeOver();
  await lane.accept([world.request('a')]);
  const { length } = world.log.states;
  await runTurns(world, lane, 18);
  expect(world.log.states.length - length).toBe(3);
});

it('assets wait with a reason if no node responds for several seconds, and resume once a node responds', async () => {
  const world = createWorld(undefined, { openNoncesMax: 1 });
  const { node, time, last } = world;
  const lane = await world.takeOver();
  await lane.accept([world.request('a')]);
  await lane.turn();
  await lane.accept([world.request('b', { contract: SHIELDS })]);
  node.isStopped = true;
  await expect(lane.turn()).rejects.toThrow();
  expect(last('b')).toMatchObject({ stage: 'accepted' });
  time.ms += 6_000;
  await expect(lane.turn()).rejects.toThrow();
  const reason = expect.stringContaining('the node does not respond');
  expect(last('a')).toMatchObject({ stage: 'waiting', nonce: 0, reason });
  expect(last('b')).toMatchObject({ stage: 'waiting', nonce: null, reason });
  node.isStopped = false;
  await lane.turn();
  expect(last('a')).toMatchObject({ stage: 'logged', reason: null });
  expect(last('b')).toMatchObject({ stage: 'accepted', reason: null });
});

const withoutReceipts = (node: ChainNode): ChainNode => ({
  ...node,
  receiptOf: () => Promise.reject(new NodeRefusal({ code: -32_000, message: 'indexing at a-secret', data: null })),
});

async function mint(nodesOf: (node: ChainNode) => readonly ChainNode[]) {
  const world = createWorld(nodesOf);
  const lane = await world.takeOver();
  await lane.accept([world.request('a', { tokenId: '1' })]);
  for (let turns = 0; turns < 20; turns++) {
    world.time.ms += 10_000;
    world.mine(1);
    await lane.turn();
  }
  return world;
}

it('a lane skips a node that rejects a request, and uses the next node', async () => {
  expect((await mint((node) => [withoutReceipts(node), node])).last()).toMatchObject({ status: 'succeeded' });
});

it("the reason for waiting assets does not contain the node's message", async () => {
  const { reason } = (await mint((node) => [withoutReceipts(node)])).last();
  expect(reason).toMatch(/cannot be read: the node rejected the request \(code -32000\)/);
});

it('a lane rejects a node with a different final block, even if there is nothing to settle', async () => {
  const other = { isActive: false };
  const hash = `0x${'11'.repeat(32)}`;
  const world = createWorld((node) => [
    { ...node, head: async (known) => ({ ...(await node.head(known)), ...(other.isActive && { knownHash: hash }) }) },
  ]);
  const lane = await world.takeOver();
  await lane.accept([world.request('a', { tokenId: '1' })]);
  await lane.turn();
  world.mine(DEPTH + 2);
  await lane.turn();
  other.isActive = true;
  await lane.accept([world.request('b', { tokenId: '2' })]);
  await expect(lane.turn()).rejects.toThrow('a different final block 3');
  expect(world.last('b')).toMatchObject({ stage: 'accepted' });
  other.isActive = false;
  await lane.turn();
  expect(world.last('b')).toMatchObject({ stage: 'logged' });
});
