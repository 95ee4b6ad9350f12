import { openRedisDatabase, type RedisDatabase } from '@playline/testkit';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Quotas } from './accept.ts';
import type { MintClaims } from './claims.ts';
import { openRedisMints } from './redis/index.ts';
import { createMemoryMints } from './test/memory/index.ts';
import { createMintWorld, type MintWorld, PUBLISH_OUTCOMES, SIGNERS } from './test/mint-world.ts';
import type { MintView } from './view.ts';

interface Store {
  readonly claims: MintClaims;
  readonly view: MintView;
  readonly quotas: Quotas;
  empty(): Promise<unknown>;
  close(): Promise<void>;
}

let redis: RedisDatabase;
beforeAll(async () => {
  redis = await openRedisDatabase();
});
afterAll(() => redis.close());

/** Uses a Redis database that contains no other data, so `empty` can flush the database. */
async function openRedis(): Promise<Store> {
  const mints = await openRedisMints(redis.target);
  return { ...mints, empty: () => redis.client.flushdb() };
}

async function openMemory(): Promise<Store> {
  const mints = createMemoryMints();
  return { ...mints, empty: async () => mints.restart({ isEmptied: true }), close: async () => {} };
}

async function createWorld(store: Store): Promise<MintWorld> {
  await store.empty();
  await store.view.complete((await store.view.progress()).run);
  return createMintWorld(store);
}

const STORES = [
  { name: 'memory', open: openMemory, numRuns: 200 },
  { name: 'Redis', open: openRedis, numRuns: runsOf({ quick: 50, all: 150 }) },
];
const REFERENCES = ['a', 'b', 'c'];

const reference = fc.constantFrom(...REFERENCES);
const signer = fc.nat({ max: SIGNERS.length - 1 });
const mintRequest = fc.record({
  action: fc.constant('request' as const),
  assets: fc.uniqueArray(fc.record({ referenceId: reference, variant: fc.nat({ max: 1 }) }), {
    selector: ({ referenceId }) => referenceId,
    minLength: 1,
    maxLength: 3,
  }),
  signer,
  outcome: fc.constantFrom(...PUBLISH_OUTCOMES),
});
const action = fc.oneof(
  { weight: 5, arbitrary: mintRequest },
  { weight: 3, arbitrary: fc.record({ action: fc.constantFrom('catchUp' as const, 'flush' as const) }) },
  { weight: 3, arbitrary: fc.record({ action: fc.constant('read' as const), signer }) },
  {
    weight: 3,
    arbitrary: fc.record({
      action: fc.constant('end' as const),
      signer,
      referenceId: reference,
      status: fc.constantFrom('succeeded' as const, 'failed' as const),
    }),
  },
);
type Action = typeof action extends fc.Arbitrary<infer T> ? T : never;

async function perform(world: MintWorld, step: Action): Promise<void> {
  if (step.action === 'request') return world.request(step);
  if (step.action === 'catchUp') await world.catchUp();
  if (step.action === 'flush') world.flush();
  if (step.action === 'read') world.read(step.signer);
  if (step.action === 'end') world.end(step.signer, step.referenceId, step.status);
}

async function settle(world: MintWorld): Promise<void> {
  world.flush();
  while (world.hasUnread()) for (const at of SIGNERS.keys()) world.read(at);
  await world.catchUp();
}

function expectConsistent(world: MintWorld): void {
  const accepted = world.attempts();
  const open = accepted.filter(({ state }) => state.status !== 'failed').map(({ state }) => state.referenceId);
  expect(new Set(open).size).toBe(open.length);
  const minted = world.minted.map(({ state }) => state.referenceId);
  expect(new Set(minted).size).toBe(minted.length);
  for (const { request, result } of world.results) {
    if (result === 'unknown') continue;
    // Every accepted asset has an attempt with its digest. Every conflicting id has an earlier attempt.
    for (const asset of request.assets) {
      const attempts = accepted.filter(({ state }) => state.referenceId === asset.referenceId);
      if (result === 'accepted') expect(attempts.map(({ digest }) => digest)).toContain(world.digestOf(asset));
      else if (result.includes(asset.referenceId)) expect(attempts).not.toEqual([]);
    }
  }
}

describe.each(STORES)('reference ids in $name', ({ open, numRuns }) => {
  let store: Store;
  beforeAll(async () => {
    store = await open();
  });
  afterAll(() => store.close());

  it('a reference id is accepted only once until its asset fails, and no accepted request is lost, despite lost or late records and crashes', async () => {
    const seen = { accepted: 0, unknown: 0, taken: 0 };
    const property = fc.asyncProperty(fc.array(action, { minLength: 10, maxLength: 40, size: 'max' }), async (plan) => {
      const world = await createWorld(store);
      for (const step of plan) await perform(world, step);
      await settle(world);
      expectConsistent(world);
      for (const { result } of world.results) seen[result === 'accepted' || result === 'unknown' ? result : 'taken']++;
      // Afterwards, no outcome is unknown: a request for any reference id is accepted or reported as a conflict.
      for (const referenceId of REFERENCES) {
        await world.catchUp();
        const before = world.results.length;
        await world.request({ assets: [{ referenceId, variant: 1 }], signer: 0, outcome: 'stored' });
        expect(world.results[before]!.result).not.toBe('unknown');
      }
      await settle(world);
      expectConsistent(world);
    });
    await fc.assert(property, { numRuns });
    // Verifies that the random steps produce every result.
    expect(Math.min(...Object.values(seen))).toBeGreaterThan(numRuns / 10);
  });

  it('a reference id is minted once per signer even if all claims are lost, because requests fail until the log is read', async () => {
    const lossy = fc.oneof(
      { weight: 9, arbitrary: action },
      { weight: 1, arbitrary: fc.record({ action: fc.constant('empty' as const) }) },
    );
    const property = fc.asyncProperty(fc.array(lossy, { maxLength: 40, size: 'max' }), async (plan) => {
      const world = await createWorld(store);
      for (const step of plan) {
        if (step.action === 'empty') await store.empty();
        else await perform(world, 'signer' in step ? { ...step, signer: 0 } : step);
      }
      await settle(world);
      const minted = world.minted.map(({ state }) => state.referenceId);
      expect(new Set(minted).size).toBe(minted.length);
      for (const { state } of world.minted) {
        const { state: shown } = await store.claims.read(state, state.referenceId);
        expect(shown).toMatchObject({ attemptId: state.attemptId, status: 'succeeded' });
      }
    });
    await fc.assert(property, { numRuns: numRuns / 2 });
  });
});
