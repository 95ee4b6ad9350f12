import type { MintStateRecord } from '@playline/contracts';
import { expect, it } from 'vitest';
import type { LaneChange } from '../ports.ts';
import { ADDRESS, createWorld, DEPTH } from '../test/lane-world.ts';
import { CHAIN, SIGNER, SWORDS, toRequest } from '../test/mint-requests.ts';
import { LaneLost, toFirstState } from './lane-context.ts';
import { LaneJournal } from './mint-lane.ts';
import { MintLedger } from './mint-ledger.ts';

it('a lane accepts, logs and sends an asset, and reports success once the block is final', async () => {
  const { takeOver, request, mine, last, tokens } = createWorld();
  const lane = await takeOver();
  await lane.accept([request('a', { tokenId: '7' })]);
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

it('a lane accepts only one of two concurrent requests with the same reference id from two partitions', async () => {
  const { takeOver, request, log } = createWorld();
  const lane = await takeOver();
  const accepted = await Promise.all([
    lane.accept([request('a')]),
    lane.accept([{ ...request('a', { attempt: 2 }), partition: 3 }]),
  ]);
  expect(accepted.map(({ states, dropped }) => [states.length, dropped])).toEqual([
    [1, 0],
    [0, 1],
  ]);
  expect(log.states).toHaveLength(1);
});

it('a lane does not mint an asset again after a revert that is not final', async () => {
  const { chain, node, takeOver, request, mine, last, tokens, log } = createWorld();
  const lane = await takeOver();
  await lane.accept([request('a', { tokenId: '7' })]);
  await lane.turn();
  chain.setRole(SWORDS, ADDRESS, false);
  mine(1);
  await lane.turn();
  expect(last()).toMatchObject({ stage: 'reverted', status: 'pending', nonce: 0 });
  chain.setRole(SWORDS, ADDRESS, true);
  mine(1);
  await lane.turn();
  // No new nonce is used, because the same bytes may succeed on another branch.
  expect(log.transactions.filter(({ kind }) => kind === 'mint')).toHaveLength(1);
  chain.removeBlocks(2);
  await lane.turn();
  expect([last().stage, node.poolSize]).toEqual(['logged', 1]);
  mine(DEPTH + 1);
  await lane.turn();
  expect(last()).toMatchObject({ status: 'succeeded' });
  expect(tokens()).toBe(1);
});

it('a lane mints an asset with a new nonce once the revert is final', async () => {
  const { chain, takeOver, request, mine, last, tokens } = createWorld();
  const lane = await takeOver();
  await lane.accept([request('a', { tokenId: '7' })]);
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
    /does not have enough funds/,
  ],
  [
    'has fees above the maximum',
    ({ node }: ReturnType<typeof createWorld>) => Object.assign(node, { baseFee: 30_000n }),
    /higher fees/,
  ],
  [
    'has a disabled key',
    ({ key }: ReturnType<typeof createWorld>) =>
      Object.assign(key, { status: { kind: 'blocked', reason: 'The key is disabled.' } }),
    /disabled/,
  ],
])('a lane that %s writes the reason once and resumes without an operator', async (_what, arrange, reason) => {
  const world = createWorld();
  const { chain, node, key, takeOver, request, mine, last, log } = world;
  const lane = await takeOver();
  arrange(world);
  mine(1);
  await lane.accept([request('a', { tokenId: '7' })]);
  await lane.turn();
  expect(last()).toMatchObject({ stage: 'waiting', reason: expect.stringMatching(reason), nonce: null });
  const { length } = log.states;
  await lane.turn();
  expect(log.states).toHaveLength(length);
  chain.setRole(SWORDS, ADDRESS, true);
  Object.assign(node, { balance: 10n ** 21n, baseFee: 10n });
  Object.assign(key, { status: { kind: 'live' } });
  mine(1);
  await lane.turn();
  expect(last()).toMatchObject({ stage: 'logged', reason: null, nonce: 0 });
});

it("a lane settles a disabled key's open nonces, and raises fees if a transaction is stuck", async () => {
  const { node, key, time, takeOver, request, mine, last, log } = createWorld();
  const lane = await takeOver();
  await lane.accept([request('a', { tokenId: '7' })]);
  await lane.turn();
  key.status = { kind: 'blocked', reason: 'The key is disabled.' };
  node.baseFee = 500n;
  await lane.accept([request('b', { tokenId: '8' })]);
  for (let turn = 0; turn < 30 && last().status === 'pending'; turn++) {
    time.ms += 10_000;
    mine(1);
    await lane.turn();
  }
  expect(last()).toMatchObject({ referenceId: 'a', status: 'succeeded' });
  expect(log.transactions.filter(({ kind }) => kind === 'mint').map(({ nonce }) => nonce)).toEqual([0, 0]);
});

it('a lane reports success even if the token is unknown, and does not release the reference id', async () => {
  const { node, takeOver, request, mine, last } = createWorld();
  const lane = await takeOver();
  const { receiptOf } = node;
  node.receiptOf = async (hash) => {
    const receipt = await receiptOf(hash);
    return receipt === null ? null : { ...receipt, logs: [] };
  };
  await lane.accept([request('a')]);
  await lane.turn();
  mine(DEPTH + 1);
  await lane.turn();
  expect(last()).toMatchObject({ status: 'succeeded', tokenId: null, activityId: null, error: null });
  expect(await lane.accept([request('a', { attempt: 1 })])).toMatchObject({ states: [], dropped: 1 });
});

it('a lane replaces rejected bytes with a logged no-op, and mints the asset with the next nonce', async () => {
  const { node, takeOver, request, mine, last, log, tokens } = createWorld();
  const lane = await takeOver();
  node.isNextRefused = true;
  await lane.accept([request('a', { tokenId: '7' })]);
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

it('a lane signs nothing if the node is on a different chain than earlier transactions', async () => {
  const { takeOver, request, mine, last, node } = createWorld();
  const lane = await takeOver();
  await lane.accept([request('a', { tokenId: '7' })]);
  await lane.turn();
  mine(1);
  Object.assign(node, { genesisHash: async () => `0x${'99'.repeat(32)}` });
  await lane.accept([request('b', { tokenId: '8' })]);
  await lane.turn();
  expect(last()).toMatchObject({
    referenceId: 'b',
    stage: 'waiting',
    reason: expect.stringContaining('a different chain'),
  });
});

it('a lane without records signs nothing while its address has transactions that are not final', async () => {
  const { takeOver, request, mine, last, log, node } = createWorld();
  const before = await takeOver();
  await before.accept([request('a', { tokenId: '7' })]);
  await before.turn();
  // The log is lost, but the transactions were sent.
  log.states.splice(0);
  log.transactions.splice(0);
  const lane = await takeOver();
  await lane.accept([request('a', { tokenId: '7' })]);
  await lane.turn();
  expect(last()).toMatchObject({ stage: 'waiting', reason: expect.stringContaining('neither final nor on the log') });
  expect(node.poolSize).toBe(1);
  mine(DEPTH + 1);
  await lane.turn();
  // The lost transaction is final, and the contract reports that the token already exists.
  expect(last()).toMatchObject({ status: 'failed', error: expect.stringContaining('ERC721InvalidSender') });
});

it('a lane deletes settled transactions but retains the highest nonce', async () => {
  const { takeOver, request, mine, log } = createWorld();
  const lane = await takeOver();
  await lane.accept([request('a', { tokenId: '7' })]);
  await lane.turn();
  mine(DEPTH + 1);
  await lane.turn();
  const writer = await log.openWriter({ chain: CHAIN, signer: SIGNER });
  expect((await writer.readTransactions()).map(({ kind, nonce }) => [kind, nonce])).toEqual([['high_water', 0]]);
  const next = await takeOver();
  await next.accept([request('b', { tokenId: '8' })]);
  await next.turn();
  expect(log.states.at(-1)).toMatchObject({ referenceId: 'b', nonce: 1 });
});

it('a lane is lost after an operator gives up its waiting assets, even if the lane writes nothing', async () => {
  const { takeOver, request, key, log, last } = createWorld();
  key.status = { kind: 'blocked', reason: 'The key is disabled.' };
  const lane = await takeOver();
  await lane.accept([request('a', { tokenId: '7' })]);
  await lane.turn();
  const operator = await log.openWriter({ chain: CHAIN, signer: SIGNER });
  const failed = { status: 'failed', stage: 'settled', reason: null, error: 'Given up.', revision: 3 } as const;
  await operator.append({ states: [{ ...last(), ...failed }], transactions: [], forgotten: [] });
  await expect(lane.turn()).rejects.toThrow(LaneLost);
  expect((await takeOver()).ledger.pending).toEqual([]);
});

it('a lost lane does not drop requests for reference ids that were released', async () => {
  const { takeOver, request, node, time, log, last } = createWorld();
  const lane = await takeOver();
  node.isStopped = true;
  await lane.accept([request('a', { tokenId: '7' })]);
  const operator = await log.openWriter({ chain: CHAIN, signer: SIGNER });
  const failed = { status: 'failed', stage: 'settled', reason: null, error: 'Given up.', revision: 2 } as const;
  await operator.append({ states: [{ ...last(), ...failed }], transactions: [], forgotten: [] });
  time.ms += 1_000;
  // No node responds, so the lane attempts no write that would be fenced.
  await expect(lane.turn()).rejects.toThrow('does not respond');
  const again = request('a', { tokenId: '7', attempt: 2 });
  await expect(lane.accept([again])).rejects.toThrow(LaneLost);
  expect(await (await takeOver()).accept([again])).toMatchObject({ dropped: 0, states: [{ status: 'pending' }] });
});

it('a lane signs nothing while the pool contains a transaction that the log has lost, and mints no asset twice', async () => {
  const { takeOver, request, mine, node, log, last, tokens, time } = createWorld();
  const lane = await takeOver();
  await lane.accept([request('a')]);
  await lane.turn();
  mine(DEPTH + 1);
  await lane.turn();
  await lane.accept([request('b')]);
  const [states, transactions] = [log.states.length, log.transactions.length];
  await lane.turn();
  expect(last('b')).toMatchObject({ stage: 'logged', nonce: 1 });
  // Simulates a log that is truncated after all brokers lost power.
  log.states.splice(states);
  log.transactions.splice(transactions);
  // With different fees, a new transaction would have different bytes.
  node.baseFee = 12n;
  const next = await takeOver();
  for (let turns = 0; turns < 4 * DEPTH; turns++) {
    time.ms += 10_000;
    await next.turn();
    mine(1);
  }
  expect(tokens()).toBe(2);
  expect(last('b')).toMatchObject({
    stage: 'waiting',
    nonce: null,
    reason: expect.stringContaining('are not on the log'),
  });
  expect(log.transactions).toHaveLength(transactions);
});

it("a lane fails an unlinked collection's assets, except assets in a signed transaction", async () => {
  const { takeOver, request, mine, unlinked, last, tokens } = createWorld();
  const lane = await takeOver();
  const linked = request('a', { tokenId: '7' });
  await lane.accept([linked]);
  await lane.turn();
  expect(last('a')).toMatchObject({ stage: 'logged' });
  await lane.accept([request('b', { tokenId: '8' })]);
  unlinked.add(linked.request.projectId);
  await lane.failUnlinked();
  expect(last('b')).toMatchObject({ status: 'failed', error: 'The project has unlinked the collection.' });
  expect(last('a')).toMatchObject({ status: 'pending' });
  mine(DEPTH + 1);
  await lane.turn();
  expect(last('a')).toMatchObject({ status: 'succeeded' });
  expect(tokens()).toBe(1);
});

it('a lane accepts the same reference id from two projects', async () => {
  const { takeOver, request } = createWorld();
  const lane = await takeOver();
  const [linked, moved] = [request('a', { tokenId: '7' }), request('a', { tokenId: '8', attempt: 2 })];
  const accepted = await lane.accept([linked, { ...moved, request: { ...moved.request, projectId: 'other' } }]);
  expect(accepted).toMatchObject({ dropped: 0, states: [{ tokenId: '7' }, { tokenId: '8', projectId: 'other' }] });
});

it("a lane's states do not contain metadata", async () => {
  const { takeOver, request, log } = createWorld();
  const lane = await takeOver();
  const large = request('a', { tokenId: '7' });
  await lane.accept([{ ...large, request: { ...large.request, metadata: '{"name":"Sword"}' } }]);
  expect(JSON.stringify([log.states, lane.ledger.pending])).not.toContain('Sword');
});

const statesOf = (count: number): MintStateRecord[] =>
  Array.from({ length: count }, (_, offset) =>
    toFirstState({ request: toRequest(`a${offset}`), partition: 0, offset }, 1),
  );

function openJournal({ failedWrite = Number.POSITIVE_INFINITY } = {}) {
  const written: LaneChange[] = [];
  const ledger = new MintLedger();
  const append = async (change: LaneChange) => {
    if (written.length === failedWrite) throw new Error('the broker is unavailable');
    written.push(change);
  };
  const journal = new LaneJournal({ append, close: async () => {} }, ledger);
  return { journal, ledger, written };
}

it("a lane's journal writes changes in batches, so that no Kafka transaction takes too long", async () => {
  const { journal, ledger, written } = openJournal();
  await journal.append({ states: statesOf(1_201) });
  expect(written.map(({ states }) => states.length)).toEqual([500, 500, 201]);
  expect(ledger.pending).toHaveLength(1_201);
  const forgotten = Array.from({ length: 501 }, (_, nonce) => ({
    chain: 'demo-chain',
    signer: Buffer.alloc(20),
    nonce,
    variant: 0,
    kind: 'mint' as const,
  }));
  await journal.append({ forgotten });
  expect(written.slice(3).map((change) => change.forgotten.length)).toEqual([500, 1]);
});

it("a lane's journal writes signed bytes and their assets' states in one transaction", async () => {
  const { journal, written } = openJournal();
  const signed = {
    chain: 'demo-chain',
    signer: Buffer.alloc(20),
    nonce: 0,
    variant: 0,
    kind: 'mint' as const,
    assets: [],
    contractAddress: null,
    hash: Buffer.alloc(32),
    signedBytes: Buffer.alloc(1),
    gasLimit: 1,
    loggedAt: 1,
    genesisHash: Buffer.alloc(32),
    maxFeePerGas: '1',
    maxPriorityFeePerGas: '1',
  };
  await journal.append({ states: statesOf(501), transactions: [signed] });
  expect(written.map(({ states, transactions }) => [states.length, transactions.length])).toEqual([[501, 1]]);
});

it("a lane's journal applies the committed batches if a later batch fails, and the lane is lost", async () => {
  const { journal, ledger } = openJournal({ failedWrite: 1 });
  await expect(journal.append({ states: statesOf(600) })).rejects.toThrow(LaneLost);
  expect(ledger.pending).toHaveLength(500);
  await expect(journal.append({ states: statesOf(1) })).rejects.toThrow(LaneLost);
});
