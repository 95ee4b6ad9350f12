import { NodeFault } from '@playline/chain';
import { expect, it } from 'vitest';
import { NodeRefusal } from '../chain/json-rpc.ts';
import type { ChainNode } from '../ports.ts';
import { TRANSFER_SINGLE } from '../steps/settle-nonces.ts';
import { createWorld, DEPTH } from '../test/lane-world.ts';
import { MemoryChain } from '../test/memory-chain.ts';
import { MemoryNode } from '../test/memory-node.ts';
import { CONTRACTS, SHIELDS, SWORDS } from '../test/mint-requests.ts';

const UNRUNNABLE = { kind: 'unrunnable', message: 'The contract cannot run the call.', isSure: true } as const;
/** A node with some of its methods replaced. */
const withOthers = (node: ChainNode, others: (node: ChainNode) => Partial<ChainNode>): ChainNode => ({
  ...node,
  ...others(node),
});
const isMintOf = (contract: string, { to, data }: { to: string; data: string }) => to === contract && data.length > 200;

type World = ReturnType<typeof createWorld>;
async function pass(
  { time, mine }: World,
  lane: Awaited<ReturnType<World['takeOver']>>,
  turns = 30,
): Promise<string[]> {
  const logged: string[] = [];
  for (let at = 0; at < turns; at++) {
    time.ms += 10_000;
    mine(1);
    await lane.turn().catch((fault: Error) => logged.push(fault.message));
  }
  return logged;
}

it('nothing becomes final with a node that has another final block', async () => {
  const other = new MemoryNode(new MemoryChain(CONTRACTS), { depth: DEPTH });
  const fork = { isActive: false };
  // One URL with two nodes behind it. The client cannot choose between them.
  const world = createWorld((node) => [
    withOthers(node, () => ({
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
  await expect(lane.turn()).rejects.toThrow(/another block/);
  expect(last()).toMatchObject({ status: 'pending', nonce: 0 });
  fork.isActive = false;
  await lane.turn();
  expect([last().status, tokens()]).toEqual(['succeeded', 1]);
});

it('one node serves a whole turn, and the next node repeats the turn when the first node fails', async () => {
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

it('a node that ends before the last final block is reported, and the lane resumes when it has caught up', async () => {
  const old = { isActive: false };
  const world = createWorld((node) => [
    withOthers(node, () => ({
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
  expect(await pass(world, lane, 3)).toHaveLength(3);
  expect(last('b')).toMatchObject({ stage: 'waiting', reason: expect.stringContaining('the node ends before block') });
  expect(lane.pendingSinceMs).not.toBeNull();
  old.isActive = false;
  await lane.turn();
  expect(last('b')).toMatchObject({ stage: 'logged', reason: null });
});

it('a node with another chain id is skipped', async () => {
  const other = (node: ChainNode) => withOthers(node, () => ({ chainId: async () => 1 }));
  const both = createWorld((node) => [other(node), node]);
  const lane = await both.takeOver();
  await lane.accept([both.request('a')]);
  await lane.turn();
  expect(both.last()).toMatchObject({ stage: 'logged' });
  const none = createWorld((node) => [other(node)]);
  const waiting = await none.takeOver();
  await waiting.accept([none.request('a')]);
  await waiting.turn();
  expect(none.last()).toMatchObject({ stage: 'waiting', reason: expect.stringContaining('serves chain 1') });
  // The worker logs the fault, and the lane is degraded.
  expect(waiting.faults.map(String)).toEqual([expect.stringContaining('serves chain 1')]);
});

it('an asset that cannot be executed alone fails, and all others are minted', async () => {
  const world = createWorld((node) => [
    withOthers(node, () => ({
      // The contract cannot finish with more than two assets, nor with the owner of this one.
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
  expect(await pass(world, lane)).toEqual([]);
  expect(world.last('bad')).toMatchObject({ status: 'failed', error: UNRUNNABLE.message });
  expect(world.tokens()).toBe(7);
});

it('no asset fails because a node is too busy, or when a repeated call succeeds', async () => {
  let count = 0;
  const world = createWorld((node) => [
    withOthers(node, () => ({
      call: async (call) => {
        if (isMintOf(SWORDS, call)) return ++count % 2 === 0 ? node.call(call) : UNRUNNABLE;
        return isMintOf(SHIELDS, call) ? { ...UNRUNNABLE, isSure: false } : node.call(call);
      },
    })),
  ]);
  const lane = await world.takeOver();
  await lane.accept([world.request('a'), world.request('b', { contract: SHIELDS })]);
  await pass(world, lane, 5);
  expect(world.log.states.filter(({ status }) => status === 'failed')).toEqual([]);
  expect(world.last('b')).toMatchObject({ stage: 'waiting', reason: UNRUNNABLE.message });
});

it('other collections continue when the node fails for one collection, whose states contain the reason', async () => {
  const world = createWorld((node) => [
    withOthers(node, () => ({
      call: async (call) => {
        if (call.to === SWORDS) throw new NodeFault('unreachable', 'the node refused it');
        return node.call(call);
      },
    })),
  ]);
  const lane = await world.takeOver();
  await lane.accept([world.request('a'), world.request('b', { contract: SHIELDS })]);
  expect(await pass(world, lane)).toEqual([]);
  expect(world.last('a')).toMatchObject({ stage: 'waiting', reason: expect.stringContaining('refused it') });
  expect(world.last('b')).toMatchObject({ status: 'succeeded' });
  expect(lane.faults).toHaveLength(1);
});

it('other collections continue when an event or receipt of one collection cannot be decoded', async () => {
  const world = createWorld((node) => {
    const { receiptOf } = node;
    return [
      Object.assign(node, {
        receiptOf: async (hash: string) => {
          const receipt = await receiptOf(hash);
          if (receipt?.logs.some(({ address }) => address === SHIELDS)) throw new Error('no such thing');
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
  expect(await pass(world, lane)).toEqual([]);
  expect(world.last('a')).toMatchObject({ status: 'succeeded', activityId: null });
  expect(world.last('b')).toMatchObject({ status: 'pending', reason: expect.stringContaining('cannot be read') });
});

it.each([
  ['funds run out', (node: MemoryNode) => Object.assign(node, { balance: 1n }), /not enough funds/],
  ['fees may not be raised', (node: MemoryNode) => Object.assign(node, { baseFee: 1_000n }), /higher fees/],
])(
  'assets wait with the reason and resume without an operator when %s after a transaction was signed',
  async (_what, take, reason) => {
    const world = createWorld(undefined, { feeMax: 40n, priorityFeeMax: 40n });
    const { node, last } = world;
    const lane = await world.takeOver();
    await lane.accept([world.request('a')]);
    await lane.turn();
    node.losePool();
    take(node);
    await pass(world, lane, 25);
    expect(last()).toMatchObject({ stage: 'waiting', nonce: 0, reason: expect.stringMatching(reason) });
    Object.assign(node, { balance: 10n ** 21n, baseFee: 10n });
    await pass(world, lane, DEPTH + 3);
    expect(last()).toMatchObject({ status: 'succeeded', reason: null });
  },
);

it('assets wait with the reason when a node refuses their bytes and the no-op', async () => {
  const world = createWorld((node) => [withOthers(node, () => ({ send: async () => ({ kind: 'refused' }) }))]);
  const lane = await world.takeOver();
  await lane.accept([world.request('a')]);
  await pass(world, lane, 3);
  expect(world.last()).toMatchObject({ stage: 'waiting', reason: expect.stringContaining('the replacement') });
});

it.each(['funds', 'refused', 'spent'] as const)(
  'fees are not raised after the outcome "%s", and the reason is written once',
  async (kind) => {
    const world = createWorld((node) => [withOthers(node, () => ({ send: async () => ({ kind }) }))]);
    const lane = await world.takeOver();
    await lane.accept([world.request('a')]);
    await pass(world, lane, 5);
    expect(world.last()).toMatchObject({ stage: 'waiting', nonce: 0 });
    const { states, transactions } = world.log;
    const before = [states.length, transactions.length];
    await pass(world, lane, 30);
    expect([states.length, transactions.length]).toEqual(before);
  },
);

it('reasons of failing nodes are written at most once a minute', async () => {
  let count = 0;
  const world = createWorld((node) => [
    withOthers(node, () => ({ head: () => Promise.reject(new NodeFault('unreachable', `fault ${count++}`)) })),
  ]);
  const lane = await world.takeOver();
  await lane.accept([world.request('a')]);
  const { length } = world.log.states;
  await pass(world, lane, 18);
  expect(world.log.states.length - length).toBe(3);
});

it('assets wait with the reason when no node responds for some seconds, until a node responds', async () => {
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

/** A node that refuses one kind of request. */
const refusing = (node: ChainNode): ChainNode => ({
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

it('a node that refuses one request is skipped, and the next node serves the request', async () => {
  expect((await mint((node) => [refusing(node), node])).last()).toMatchObject({ status: 'succeeded' });
});

it('the reason of waiting assets does not quote the message of the node', async () => {
  const { reason } = (await mint((node) => [refusing(node)])).last();
  expect(reason).toMatch(/cannot be read: the node refused the request \(code -32000\)/);
});

it('a node with another final block is skipped, even when there is nothing to settle', async () => {
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
  await expect(lane.turn()).rejects.toThrow('another block 3 than the block that was final');
  expect(world.last('b')).toMatchObject({ stage: 'accepted' });
  other.isActive = false;
  await lane.turn();
  expect(world.last('b')).toMatchObject({ stage: 'logged' });
});
