import { describe, expect, it } from 'vitest';
import { ADDRESS, createWorld, DEPTH } from '../test/lane-world.ts';
import { CHAIN, SIGNER, SWORDS } from '../test/mint-requests.ts';

describe('a lane', () => {
  it('accepts, logs and sends, and reports success once the block is final and not before', async () => {
    const { takeOver, request, mine, last, tokens } = createWorld();
    const lane = await takeOver();
    await lane.take([request('a', { tokenId: '7' })]);
    expect(last()).toMatchObject({ stage: 'accepted', status: 'pending', revision: 1 });
    await lane.turn();
    expect(last()).toMatchObject({ stage: 'logged', nonce: 0 });
    mine(DEPTH);
    await lane.turn();
    expect(last()).toMatchObject({ stage: 'mined', status: 'pending' });
    mine(1);
    await lane.turn();
    expect(last()).toMatchObject({ stage: 'settled', status: 'succeeded', tokenId: '7', error: null });
    expect(tokens()).toBe(1);
  });

  it('accepts one of two requests of a reference id that come at once, as from two partitions', async () => {
    const { takeOver, request, log } = createWorld();
    const lane = await takeOver();
    const taken = await Promise.all([
      lane.take([request('a')]),
      lane.take([{ ...request('a', { attempt: 2 }), partition: 3 }]),
    ]);
    expect(taken.map(({ states, dropped }) => [states.length, dropped])).toEqual([
      [1, 0],
      [0, 1],
    ]);
    expect(log.states).toHaveLength(1);
  });

  it('does not carry an asset again after a revert that a reorganisation may undo', async () => {
    const { chain, node, takeOver, request, mine, last, tokens, log } = createWorld();
    const lane = await takeOver();
    await lane.take([request('a', { tokenId: '7' })]);
    await lane.turn();
    chain.setRole(SWORDS, ADDRESS, false);
    mine(1);
    await lane.turn();
    expect(last()).toMatchObject({ stage: 'reverted', status: 'pending', nonce: 0 });
    chain.setRole(SWORDS, ADDRESS, true);
    mine(1);
    await lane.turn();
    // No new nonce begins: on the other branch the same bytes succeed.
    expect(log.transactions.filter(({ kind }) => kind === 'mint')).toHaveLength(1);
    chain.leave(2);
    await lane.turn();
    expect([last().stage, node.poolSize]).toEqual(['logged', 1]);
    mine(DEPTH + 1);
    await lane.turn();
    expect(last()).toMatchObject({ status: 'succeeded' });
    expect(tokens()).toBe(1);
  });

  it('mints it again with another nonce when the revert is final', async () => {
    const { chain, takeOver, request, mine, last, tokens } = createWorld();
    const lane = await takeOver();
    await lane.take([request('a', { tokenId: '7' })]);
    await lane.turn();
    chain.setRole(SWORDS, ADDRESS, false);
    mine(1);
    chain.setRole(SWORDS, ADDRESS, true);
    mine(DEPTH);
    await lane.turn();
    expect(last()).toMatchObject({ stage: 'logged', nonce: 1 });
    mine(DEPTH + 1);
    await lane.turn();
    expect([last().status, tokens()]).toEqual(['succeeded', 1]);
  });

  it.each([
    [
      'has no role',
      ({ chain }: ReturnType<typeof createWorld>) => chain.setRole(SWORDS, ADDRESS, false),
      /has no MINTER_ROLE/,
    ],
    [
      'has no funds',
      ({ node }: ReturnType<typeof createWorld>) => Object.assign(node, { balance: 1n }),
      /not enough funds/,
    ],
    [
      'asks for more than the cap',
      ({ node }: ReturnType<typeof createWorld>) => Object.assign(node, { baseFee: 30_000n }),
      /higher fees/,
    ],
    [
      'has a disabled key',
      ({ key }: ReturnType<typeof createWorld>) =>
        Object.assign(key, { standing: { kind: 'waits', reason: 'The key is disabled.' } }),
      /disabled/,
    ],
  ])('that %s gives the reason once, and goes on by itself', async (_what, take, reason) => {
    const world = createWorld();
    const { chain, node, key, takeOver, request, mine, last, log } = world;
    const lane = await takeOver();
    take(world);
    mine(1);
    await lane.take([request('a', { tokenId: '7' })]);
    await lane.turn();
    expect(last()).toMatchObject({ stage: 'waiting', reason: expect.stringMatching(reason), nonce: null });
    const { length } = log.states;
    await lane.turn();
    expect(log.states).toHaveLength(length);
    chain.setRole(SWORDS, ADDRESS, true);
    Object.assign(node, { balance: 10n ** 21n, baseFee: 10n });
    Object.assign(key, { standing: { kind: 'live' } });
    mine(1);
    await lane.turn();
    expect(last()).toMatchObject({ stage: 'logged', reason: null, nonce: 0 });
  });

  it('finishes the open nonces of a disabled key, with higher fees where a transaction is stuck', async () => {
    const { node, key, time, takeOver, request, mine, last, log } = createWorld();
    const lane = await takeOver();
    await lane.take([request('a', { tokenId: '7' })]);
    await lane.turn();
    key.standing = { kind: 'waits', reason: 'The key is disabled.' };
    node.baseFee = 500n;
    await lane.take([request('b', { tokenId: '8' })]);
    for (let turn = 0; turn < 30 && last().status === 'pending'; turn++) {
      time.ms += 10_000;
      mine(1);
      await lane.turn();
    }
    expect(last()).toMatchObject({ referenceId: 'a', status: 'succeeded' });
    expect(log.transactions.filter(({ kind }) => kind === 'mint').map(({ nonce }) => nonce)).toEqual([0, 0]);
  });

  it('reports success even when it cannot tell which token was minted, and never frees the reference id', async () => {
    const { node, takeOver, request, mine, last } = createWorld();
    const lane = await takeOver();
    const { receiptOf } = node;
    node.receiptOf = async (hash) => {
      const receipt = await receiptOf(hash);
      return receipt === null ? null : { ...receipt, logs: [] };
    };
    await lane.take([request('a')]);
    await lane.turn();
    mine(DEPTH + 1);
    await lane.turn();
    expect(last()).toMatchObject({ status: 'succeeded', tokenId: null, activityId: null, error: null });
    expect(await lane.take([request('a', { attempt: 1 })])).toMatchObject({ states: [], dropped: 1 });
  });

  it('spends a nonce whose bytes a node refuses for good by a logged no-op, and mints with the next one', async () => {
    const { node, takeOver, request, mine, last, log, tokens } = createWorld();
    const lane = await takeOver();
    node.refusesNext = true;
    await lane.take([request('a', { tokenId: '7' })]);
    await lane.turn();
    expect(log.transactions.map(({ kind, nonce, variant }) => [kind, nonce, variant])).toEqual([
      ['mint', 0, 0],
      ['high_water', 0, 0],
      ['noop', 0, 1],
    ]);
    mine(DEPTH + 1);
    await lane.turn();
    expect(last()).toMatchObject({ stage: 'logged', nonce: 1 });
    mine(DEPTH + 1);
    await lane.turn();
    expect([last().status, tokens()]).toEqual(['succeeded', 1]);
  });

  it('begins nothing on a chain other than the one it has signed for', async () => {
    const { takeOver, request, mine, last, node } = createWorld();
    const lane = await takeOver();
    await lane.take([request('a', { tokenId: '7' })]);
    await lane.turn();
    mine(1);
    Object.assign(node, { genesisHash: async () => `0x${'99'.repeat(32)}` });
    await lane.take([request('b', { tokenId: '8' })]);
    await lane.turn();
    expect(last()).toMatchObject({
      referenceId: 'b',
      stage: 'waiting',
      reason: expect.stringContaining('another chain'),
    });
  });

  it('without records in the log begins nothing while the address has transactions that are not final', async () => {
    const { takeOver, request, mine, last, log, node } = createWorld();
    const before = await takeOver();
    await before.take([request('a', { tokenId: '7' })]);
    await before.turn();
    // The log is lost, but the sent transactions are not.
    log.states.splice(0);
    log.transactions.splice(0);
    const lane = await takeOver();
    await lane.take([request('a', { tokenId: '7' })]);
    await lane.turn();
    expect(last()).toMatchObject({ stage: 'waiting', reason: expect.stringContaining('not final and not known') });
    expect(node.poolSize).toBe(1);
    mine(DEPTH + 1);
    await lane.turn();
    // Its nonce is spent by now; the token exists already, as the contract says.
    expect(last()).toMatchObject({ status: 'failed', error: expect.stringContaining('ERC721InvalidSender') });
  });

  it('forgets transactions that nothing depends on any more, but never the largest nonce', async () => {
    const { takeOver, request, mine, log } = createWorld();
    const lane = await takeOver();
    await lane.take([request('a', { tokenId: '7' })]);
    await lane.turn();
    mine(DEPTH + 1);
    await lane.turn();
    const writer = await log.openWriter({ chain: CHAIN, signer: SIGNER });
    expect((await writer.readTransactions()).map(({ kind, nonce }) => [kind, nonce])).toEqual([['high_water', 0]]);
    const next = await takeOver();
    await next.take([request('b', { tokenId: '8' })]);
    await next.turn();
    expect(log.states.at(-1)).toMatchObject({ referenceId: 'b', nonce: 1 });
  });
});
