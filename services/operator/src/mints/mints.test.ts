import type { CollectionRecord, SignableKeyRecord } from '@playline/access-keys';
import type { MintRequestRecord } from '@playline/contracts';
import { type MintLog, type MintState, toRequestedState } from '@playline/mints';
import { createMemoryMints } from '@playline/mints/memory';
import { expect, it } from 'vitest';
import { readSigners, rebuildMints, retryMint, toSignerLines } from '../commands/mints.ts';
import { CONTRACT as contractAddress, FAILED, SIGNER as key1 } from './test/mint-state.ts';

const key2 = `0x${'52'.repeat(20)}`;
const owner = { projectId: 'demo', environmentId: 'demo-development' };
const change = { revision: 1, changedAt: 1, changedBy: 'ada', requestId: 'r' };
const collection: CollectionRecord = {
  id: `demo-chain:${contractAddress}`,
  chain: 'demo-chain',
  contractAddress,
  name: 'Swords',
  state: 'linked',
  ...owner,
  ...change,
  createdAt: 1,
};
const key = (address: string, changes: Partial<SignableKeyRecord> = {}): SignableKeyRecord => ({
  address,
  ...owner,
  ...change,
  name: 'k',
  sealed: 's',
  state: 'live',
  createdAt: 1,
  ...changes,
});

const failed = { ...FAILED, metadata: '{"name":"Sword"}' };

function openRetry() {
  const { claims, view } = createMemoryMints();
  const published: MintRequestRecord[] = [];
  const retry = (state: typeof failed, changes: Partial<Parameters<typeof retryMint>[0]> = {}) =>
    retryMint(
      {
        claims,
        collections: [collection],
        signableKeys: [key(key2, { createdAt: 2 }), key(key1, { state: 'disabled' })],
        publish: async (records) => void published.push(...records),
        traceId: 'f'.repeat(32),
        ...changes,
      },
      state,
    );
  return { claims, view, published, retry };
}

it('retryMint requests a failed asset again as a new attempt with the current signing key', async () => {
  const { claims, view, published, retry } = openRetry();
  await view.restore([failed]);
  await retry(failed);
  expect(published).toMatchObject([{ referenceId: 'sword', tokenId: '7', metadata: '{"name":"Sword"}' }]);
  expect(published.map(toRequestedState)).toMatchObject([{ signer: key2, status: 'pending' }]);
  const { state } = await claims.read(failed, 'sword');
  expect(state).toMatchObject({ status: 'pending', revision: 0 });
  expect(state?.attemptId).not.toBe(failed.attemptId);
  expect(state!.requestedAt).toBeGreaterThan(failed.requestedAt);
});

it('retryMint refuses pending and minted assets, unlinked collections and environments without a signing key', async () => {
  const { published, retry } = openRetry();
  await expect(retry({ ...failed, status: 'pending' })).rejects.toThrow(
    'only a failed asset can be retried: the asset is pending',
  );
  await expect(retry({ ...failed, status: 'succeeded' })).rejects.toThrow(
    'only a failed asset can be retried: the asset is token 7',
  );
  await expect(retry(failed, { collections: [{ ...collection, state: 'unlinked' }] })).rejects.toThrow('not linked');
  await expect(retry(failed, { signableKeys: [] })).rejects.toThrow('demo-development has no live signable key');
  expect(published).toEqual([]);
});

it.each([
  { projectId: 'former', environmentId: 'former-production' },
  { projectId: 'demo', environmentId: 'demo-production' },
])('retryMint refuses an asset that $environmentId requested before the collection was moved', async (requester) => {
  const { view, published, retry } = openRetry();
  const foreignAsset = { ...failed, ...requester };
  await view.restore([foreignAsset]);
  await expect(retry(foreignAsset)).rejects.toThrow(
    `the asset was requested by ${requester.environmentId} of project ${requester.projectId}, but the collection is now linked to demo-development`,
  );
  expect(published).toEqual([]);
});

const logOf = (topic: string, states: readonly MintState[]): MintLog => ({
  topic,
  bounds: async () => [{ partition: 0, start: 0, end: states.length }],
  async *read({ start, end }) {
    for (let offset = start; offset < end; offset++) yield { offset, state: states[offset]! };
  },
});

it('rebuildMints restores mint requests that are only in the tables or only in the log', async () => {
  const mints = createMemoryMints();
  mints.restart({ isEmptied: true });
  const old = { ...failed, referenceId: 'old', attemptId: 'b1'.repeat(16), status: 'succeeded' as const };
  const later = { ...failed, attemptId: 'a2'.repeat(16), requestedAt: 3_000, revision: 0, status: 'pending' as const };
  async function* stored() {
    yield [failed, old];
  }
  const logs = { states: logOf('states', [failed]), requests: logOf('requests', [later]) };
  expect(await rebuildMints({ view: mints.view, logs, stored })).toEqual({ rows: 2, records: 2 });
  const read = async (referenceId: string) => (await mints.claims.read(failed, referenceId)).state?.status;
  expect([await read('old'), await read('sword')]).toEqual(['succeeded', 'pending']);
  const wanted = { attemptId: 'c1'.repeat(16), signer: key1, digest: 'd' };
  const claim = (referenceId: string) => mints.claims.claim(failed, [{ ...wanted, referenceId }]);
  expect([await claim('old'), await claim('sword')].map(({ kind }) => kind)).toEqual(['taken', 'taken']);
});

const waiting = (changes: Partial<MintState>): MintState => ({
  ...failed,
  status: 'pending',
  stage: 'waiting',
  error: null,
  reason: 'The signer lacks MINTER_ROLE.',
  ...changes,
});
const inBatches = async function* (...batches: readonly (readonly MintState[])[]) {
  yield* batches;
};

it('readSigners reports pending assets, blockers and open nonces, blocked signers first', async () => {
  const states = [
    [failed, waiting({ signer: key2, requestedAt: 500 }), waiting({ signer: key2, reason: 'Its key is disabled.' })],
    [waiting({ signer: key2, requestedAt: 700 }), waiting({ signer: key2, stage: 'logged', nonce: 9, reason: null })],
    [waiting({ signer: key2, stage: 'mined', nonce: 4, reason: null })],
  ];
  const lanes = await readSigners(inBatches(...states), [
    key(key2, { state: 'disabled' }),
    key(`0x${'77'.repeat(20)}`),
  ]);
  expect(lanes).toMatchObject([
    {
      chain: 'demo-chain',
      signer: key2,
      keyState: 'disabled',
      pending: 5,
      openNonces: [4, 9],
      oldestPendingAt: 500,
      failed: 0,
      waiting: [
        { reason: 'The signer lacks MINTER_ROLE.', count: 2 },
        { reason: 'Its key is disabled.', count: 1 },
      ],
    },
    { chain: 'demo-chain', signer: key1, keyName: null, keyState: null, pending: 0, failed: 1 },
    { chain: null, signer: `0x${'77'.repeat(20)}`, keyState: 'live', pending: 0 },
  ]);
  expect(toSignerLines(lanes[0]!)).toEqual([
    `demo-chain  ${key2}  (key "k", disabled): 5 pending, oldest since 1970-01-01T00:00:00.500Z, open nonces 4, 9, 0 succeeded, 0 failed`,
    '  2 assets waiting: The signer lacks MINTER_ROLE.',
    '  1 asset waiting: Its key is disabled.',
  ]);
});
