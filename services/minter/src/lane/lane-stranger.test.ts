import { describe, expect, it } from 'vitest';
import type { ChainNode } from '../ports.ts';
import { ADDRESS, createWorld, DEPTH } from '../test/lane-world.ts';
import { createMemorySigner } from '../test/memory-node.ts';
import { SHIELDS } from '../test/mint-requests.ts';

type World = ReturnType<typeof createWorld>;
type Lane = Awaited<ReturnType<World['takeOver']>>;

/** Another holder of the key sends a different transaction with a nonce of ours, and ours is lost from the pool. */
async function sendOther({ node }: World, nonce: number): Promise<void> {
  node.losePool();
  const call = { chainId: 31_337, nonce, to: ADDRESS, data: '0x', gas: 21_000 };
  const fees = { maxFeePerGas: 9_999n, maxPriorityFeePerGas: 999n };
  const { bytes } = await createMemorySigner(ADDRESS).sign({ ...call, ...fees }, { isOpen: true });
  await node.send(bytes);
}

async function pass({ time, mine }: World, lane: Lane, turns: number): Promise<void> {
  for (let at = 0; at < turns; at++) {
    mine(1);
    time.ms += 10_000;
    await lane.turn();
  }
}

/** The first variant of each nonce. */
const mintsOf = ({ log }: World) => log.transactions.filter(({ kind, variant }) => kind === 'mint' && variant === 0);

describe('a nonce that somebody else has spent', () => {
  it('keeps its assets until that is final, with the reason; then another nonce mints each of them once', async () => {
    const world = createWorld(undefined, { openNoncesMax: 1 });
    const lane = await world.takeOver();
    await lane.take([world.request('a', { tokenId: '7' })]);
    await lane.turn();
    await sendOther(world, 0);
    await lane.take([world.request('b', { contract: SHIELDS })]);
    await pass(world, lane, DEPTH);
    const reason = expect.stringMatching(/Nonce 0 .* is spent by a transaction that is not known here/);
    expect(world.last('a')).toMatchObject({ stage: 'waiting', nonce: 0, reason });
    expect(world.last('b')).toMatchObject({ stage: 'waiting', nonce: null, reason });
    expect(mintsOf(world)).toHaveLength(1);
    await pass(world, lane, 3 * DEPTH);
    const nonces = ['a', 'b'].map((name) => [world.last(name).status, world.last(name).nonce]);
    expect(nonces).toEqual([
      ['succeeded', 1],
      ['succeeded', 2],
    ]);
    expect(world.tokens()).toBe(2);
  });

  it('frees no assets while a reorganisation may undo that: on the other branch the same bytes mint', async () => {
    const world = createWorld();
    const lane = await world.takeOver();
    await lane.take([world.request('a', { tokenId: '7' })]);
    await lane.turn();
    await sendOther(world, 0);
    await pass(world, lane, DEPTH);
    world.chain.leave(DEPTH);
    world.node.losePool();
    await pass(world, lane, DEPTH + 3);
    expect(mintsOf(world).map(({ nonce }) => nonce)).toEqual([0]);
    expect([world.last().status, world.last().nonce, world.tokens()]).toEqual(['succeeded', 0, 1]);
  });

  it('does not hold up the nonce behind it, which gets higher fees when it is stuck', async () => {
    const world = createWorld();
    const { node, time, log } = world;
    const lane = await world.takeOver();
    await lane.take([world.request('a', { tokenId: '7' }), world.request('b', { contract: SHIELDS })]);
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
    await pass(world, lane, 3 * DEPTH);
    expect(['a', 'b'].map((name) => world.last(name).status)).toEqual(['succeeded', 'succeeded']);
    expect(world.tokens()).toBe(2);
  });

  it.each([
    ['cannot tell who has spent it', null],
    ['tells of one of ours, and has no receipt of it', 'ours'],
  ] as const)('frees nothing where the node %s', async (_what, reported) => {
    const world = createWorld((node) => [
      new Proxy<ChainNode>(node, {
        get: (_node, request: keyof ChainNode) => {
          if (request !== 'spenderOf') return node[request];
          return async () => (reported === null ? null : `0x${mintsOf(world)[0]!.hash.toString('hex')}`);
        },
      }),
    ]);
    const lane = await world.takeOver();
    await lane.take([world.request('a', { tokenId: '7' })]);
    await lane.turn();
    await sendOther(world, 0);
    await pass(world, lane, 4 * DEPTH);
    expect(world.last()).toMatchObject({ status: 'pending', nonce: 0, reason: expect.stringContaining('spent by') });
    expect(mintsOf(world)).toHaveLength(1);
  });
});
