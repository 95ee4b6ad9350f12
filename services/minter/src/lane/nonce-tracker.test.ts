import { NodeFault } from '@playline/chain';
import { expect, it } from 'vitest';
import type { ChainNode } from '../ports.ts';
import { ADDRESS, createWorld, DEPTH } from '../test/lane-world.ts';
import { createMemorySigner } from '../test/memory-node.ts';
import { ownerOf, POTIONS, SHIELDS } from '../test/mint-requests.ts';

type World = ReturnType<typeof createWorld>;
type Lane = Awaited<ReturnType<World['takeOver']>>;

/** Drops the lane's transaction from the pool, and sends another program's transaction with the same nonce. */
async function sendOther({ node }: World, nonce: number): Promise<void> {
  node.losePool();
  const call = { chainId: 31_337, nonce, to: ADDRESS, data: '0x', gas: 21_000 };
  const fees = { maxFeePerGas: 9_999n, maxPriorityFeePerGas: 999n };
  const { bytes } = await createMemorySigner(ADDRESS).sign({ ...call, ...fees }, { isOpen: true });
  await node.send(bytes);
}

async function runTurns({ time, mine }: World, lane: Lane, turns: number): Promise<void> {
  for (let at = 0; at < turns; at++) {
    mine(1);
    time.ms += 10_000;
    await lane.turn();
  }
}

const mintsOf = ({ log }: World) => log.transactions.filter(({ kind, variant }) => kind === 'mint' && variant === 0);

it('assets whose nonce another program used wait until its transaction is final and then get a new nonce', async () => {
  const world = createWorld(undefined, { openNoncesMax: 1 });
  const lane = await world.takeOver();
  await lane.accept([world.request('a', { tokenId: '7' })]);
  await lane.turn();
  await sendOther(world, 0);
  await lane.accept([world.request('b', { contract: SHIELDS })]);
  await runTurns(world, lane, DEPTH);
  const reason = expect.stringMatching(/Nonce 0 .* was used by a transaction that is not on the log/);
  expect(world.last('a')).toMatchObject({ stage: 'waiting', nonce: 0, reason });
  expect(world.last('b')).toMatchObject({ stage: 'waiting', nonce: null, reason });
  expect(mintsOf(world)).toHaveLength(1);
  await runTurns(world, lane, 3 * DEPTH);
  const nonces = ['a', 'b'].map((name) => [world.last(name).status, world.last(name).nonce]);
  expect(nonces).toEqual([
    ['succeeded', 1],
    ['succeeded', 2],
  ]);
  expect(world.tokens()).toBe(2);
});

it('assets whose nonce another program used keep the nonce if a reorganisation removes that transaction', async () => {
  const world = createWorld();
  const lane = await world.takeOver();
  await lane.accept([world.request('a', { tokenId: '7' })]);
  await lane.turn();
  await sendOther(world, 0);
  await runTurns(world, lane, DEPTH);
  world.chain.removeBlocks(DEPTH);
  world.node.losePool();
  await runTurns(world, lane, DEPTH + 3);
  expect(mintsOf(world).map(({ nonce }) => nonce)).toEqual([0]);
  expect([world.last().status, world.last().nonce, world.tokens()]).toEqual(['succeeded', 0, 1]);
});

it('a nonce used by another program does not block the next nonce, whose fees are raised if it is stuck', async () => {
  const world = createWorld();
  const { node, time, log } = world;
  const lane = await world.takeOver();
  await lane.accept([world.request('a', { tokenId: '7' }), world.request('b', { contract: SHIELDS })]);
  await lane.turn();
  await sendOther(world, 0);
  world.mine(1);
  time.ms += 5_000;
  await lane.turn();
  node.baseFee = 500n;
  node.losePool();
  for (let turns = 0; turns < 3; turns++) {
    time.ms += 10_000;
    await lane.turn();
  }
  const raised = log.transactions.filter(({ kind, variant }) => kind === 'mint' && variant > 0);
  expect(new Set(raised.map(({ nonce }) => nonce))).toEqual(new Set([1]));
  await runTurns(world, lane, 3 * DEPTH);
  expect(['a', 'b'].map((name) => world.last(name).status)).toEqual(['succeeded', 'succeeded']);
  expect(world.tokens()).toBe(2);
});

it.each([
  ['does not find the transaction that used the nonce', null],
  ["reports the lane's own transaction without a receipt", 'own'],
] as const)('assets keep their nonce if the node %s', async (_what, reported) => {
  const world = createWorld((node) => [
    new Proxy<ChainNode>(node, {
      get: (_node, request: keyof ChainNode) => {
        if (request !== 'hashByNonce') return node[request];
        return async () => (reported === null ? null : `0x${mintsOf(world)[0]!.hash.toString('hex')}`);
      },
    }),
  ]);
  const lane = await world.takeOver();
  await lane.accept([world.request('a', { tokenId: '7' })]);
  await lane.turn();
  await sendOther(world, 0);
  await runTurns(world, lane, 4 * DEPTH);
  expect(world.last()).toMatchObject({ status: 'pending', nonce: 0, reason: expect.stringContaining('used by') });
  expect(mintsOf(world)).toHaveLength(1);
});

const OPEN_MAX = 4;
async function begin(world: World, owners: number) {
  world.chain.setRole(POTIONS, ADDRESS, true);
  world.mine(1);
  const lane = await world.takeOver();
  const asset = { contract: POTIONS, tokenId: '1', amount: '1' };
  await lane.accept(
    Array.from({ length: owners }, (_, at) => world.request(`a${at}`, { ...asset, owner: ownerOf(at) })),
  );
  const runTurns = async (blocks: number) => {
    for (let at = 0; at < blocks; at++) {
      await lane.turn();
      world.mine(1);
      world.time.ms += 1_000;
    }
    await lane.turn();
  };
  return { lane, runTurns };
}

const watch = (node: ChainNode, onRequest: (request: keyof ChainNode) => void): ChainNode =>
  new Proxy(node, {
    get: (_node, request: keyof ChainNode) => {
      onRequest(request);
      return node[request];
    },
  });

const countMints = ({ log }: World) => log.transactions.filter(({ kind }) => kind === 'mint').length;

it('transactions that are not final do not block transactions for other owners', async () => {
  const world = createWorld(undefined, { openNoncesMax: OPEN_MAX });
  const { runTurns } = await begin(world, 30);
  await runTurns(DEPTH - 1);
  expect(countMints(world)).toBe(DEPTH * OPEN_MAX);
  await runTurns(DEPTH + 10);
  expect(world.tokens()).toBe(30);
  expect(world.log.states.filter(({ status }) => status === 'succeeded')).toHaveLength(30);
});

it('the number of transactions that are not final never exceeds the configured maximum', async () => {
  const world = createWorld(undefined, { openNoncesMax: OPEN_MAX, unfinalNoncesMax: 6 });
  const { runTurns } = await begin(world, 30);
  await runTurns(DEPTH - 1);
  expect(countMints(world)).toBe(6);
  await runTurns(60);
  expect(world.tokens()).toBe(30);
});

it.each([1, DEPTH - 1])(
  'transactions are resent if the last %i blocks are replaced, and each reference id is minted once',
  async (count) => {
    const world = createWorld(undefined, { openNoncesMax: OPEN_MAX });
    const { runTurns, lane } = await begin(world, 20);
    await runTurns(DEPTH - 1);
    const before = countMints(world);
    world.chain.removeBlocks(count);
    world.node.losePool();
    world.time.ms += 10_000;
    await lane.turn();
    const absent = lane.ledger.absentNonces.length;
    // No new transaction begins until these are in blocks again, because their number exceeds the maximum.
    expect(absent).toBe((count + 1) * OPEN_MAX);
    expect(world.node.poolSize).toBe(absent);
    expect(countMints(world)).toBe(before);
    await runTurns(40);
    expect([world.tokens(), world.log.states.filter(({ status }) => status === 'succeeded').length]).toEqual([20, 20]);
  },
);

it('checking all transactions that are in blocks takes one request per turn', async () => {
  const requested: string[] = [];
  const world = createWorld((node) => [watch(node, (request) => requested.push(request))], { openNoncesMax: 30 });
  const { runTurns, lane } = await begin(world, 30);
  await runTurns(2);
  requested.splice(0);
  await lane.turn();
  expect(lane.ledger.openNonces).toHaveLength(30);
  expect(requested.filter((request) => request === 'receiptOf')).toEqual([]);
  expect(requested.length).toBeLessThan(10);
});

it('only transactions in replaced blocks are checked again', async () => {
  const requested: string[] = [];
  const world = createWorld((node) => [watch(node, (request) => requested.push(request))]);
  const { runTurns, lane } = await begin(world, 3 * OPEN_MAX);
  await runTurns(DEPTH - 1);
  world.chain.removeBlocks(1);
  requested.splice(0);
  await lane.turn();
  expect(requested.filter((request) => request === 'receiptOf')).toHaveLength(OPEN_MAX);
});

it('states show mined transactions even if the node fails for other transactions', async () => {
  let receiptsLeft = Number.POSITIVE_INFINITY;
  const world = createWorld((node) => [
    watch(node, (request) => {
      if (request === 'receiptOf' && --receiptsLeft === 0) throw new NodeFault('busy', 'rate limited');
    }),
  ]);
  const { lane } = await begin(world, 2);
  await lane.turn();
  world.mine(1);
  receiptsLeft = 2;
  await expect(lane.turn()).rejects.toThrow('rate limited');
  expect(world.last('a0')).toMatchObject({ stage: 'mined' });
  await lane.turn();
  expect(lane.ledger.absentNonces).toEqual([]);
});
