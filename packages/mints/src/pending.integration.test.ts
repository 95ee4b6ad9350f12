import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openRedisDatabase, type RedisDatabase, type RedisTarget, until } from '@playline/testkit';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { createAcceptMints } from './accept.ts';
import type { MintClaims } from './claims.ts';
import { FAILED_PER_HOUR_MAX, PENDING_LIMITS, SETTLED_LIMITS } from './claims.ts';
import { openRedisMints, type RedisMints } from './redis/index.ts';
import type { MintState } from './states.ts';
import { createMemoryMints } from './test/memory/index.ts';
import type { MintView } from './view.ts';

const COLLECTION = { chain: 'demo-chain', contractAddress: `0x${'c0'.repeat(20)}` };
const SIGNER = `0x${'51'.repeat(20)}`;
/** More assets than a request can contain, so that a few calls reach the limit. */
const ASSETS_PER_CALL = 1_000;
const CALLS = PENDING_LIMITS.environment.assets / ASSETS_PER_CALL;

interface Store {
  readonly claims: MintClaims;
  readonly view: MintView;
}

let redis: RedisDatabase;
beforeAll(async () => {
  redis = await openRedisDatabase();
});
afterAll(() => redis.close());

async function openRedisStore(target: RedisTarget, namespace = ''): Promise<RedisMints> {
  const mints = await openRedisMints({ ...target, namespace });
  onTestFinished(() => mints.close());
  await mints.view.complete((await mints.view.progress()).run);
  return mints;
}

const createClaim = (referenceId: string) => ({
  referenceId,
  attemptId: randomUUID().replaceAll('-', ''),
  signer: SIGNER,
  digest: '0'.repeat(32),
});

async function claim({ claims }: Store, environmentId: string, names: readonly string[], projectId = 'main') {
  return claims.claim({ ...COLLECTION, projectId, environmentId }, names.map(createClaim));
}

const createNames = (batch: string) => Array.from({ length: ASSETS_PER_CALL }, (_, at) => `${batch}-${at}`);

async function fill(store: Store, environmentId: string): Promise<void> {
  for (let batch = 0; batch < CALLS; batch++)
    expect((await claim(store, environmentId, createNames(`${environmentId}-${batch}`))).kind).toBe('claimed');
}

const createFailedAsset = (referenceId: string, environmentId: string): MintState => ({
  ...COLLECTION,
  referenceId,
  attemptId: randomUUID().replaceAll('-', ''),
  signer: SIGNER,
  projectId: 'main',
  environmentId,
  ownerAddress: SIGNER,
  tokenId: null,
  amount: null,
  requestedAt: Date.now() + 1_000,
  traceId: '0'.repeat(32),
  revision: 2,
  status: 'failed',
  stage: 'settled',
  reason: null,
  nonce: null,
  transactionHash: null,
  activityId: null,
  error: 'reverted',
  changedAt: Date.now(),
});

describe.each([
  { name: 'memory', open: async (): Promise<Store> => createMemoryMints() },
  { name: 'Redis', open: (): Promise<Store> => openRedisStore(redis.target, `${randomUUID()}:`) },
])('pending assets in $name', ({ open }) => {
  it('pending assets are limited per environment and project, and a settled asset frees capacity', async () => {
    const store = await open();
    await fill(store, 'main-a');
    expect(await claim(store, 'main-a', ['one'])).toMatchObject({ kind: 'full' });
    // A retried request reuses its claims, and other projects are not affected.
    expect((await claim(store, 'main-a', createNames('main-a-0'))).kind).toBe('claimed');
    expect((await claim(store, 'other-a', ['one'], 'other')).kind).toBe('claimed');
    await fill(store, 'main-b');
    expect(await claim(store, 'main-c', ['one'])).toMatchObject({ kind: 'full' });
    await store.view.restore(createNames('main-a-0').map((name) => createFailedAsset(name, 'main-a')));
    expect((await claim(store, 'main-a', createNames('again'))).kind).toBe('claimed');
    expect(await claim(store, 'main-a', ['one'])).toMatchObject({ kind: 'full' });
  });

  it('pending assets are also limited by bytes, so fewer assets with long reference ids fit', async () => {
    const store = await open();
    const createLongNames = (batch: number) => createNames(String(batch)).map((name) => '😀'.repeat(240) + name);
    let accepted = 0;
    for (let batch = 0; batch < CALLS; batch++)
      if ((await claim(store, 'main-a', createLongNames(batch))).kind === 'claimed') accepted += ASSETS_PER_CALL;
    expect(accepted).toBeGreaterThan(PENDING_LIMITS.environment.assets / 5);
    expect(accepted).toBeLessThan(PENDING_LIMITS.environment.assets / 2);
  });
});

const POLICY = { kind: 'mint', perSecond: 1, burst: 1_000_000 } as const;

const createRequest = (names: readonly string[]) => ({
  collection: COLLECTION,
  projectId: 'main',
  environmentId: 'main-a',
  traceId: '0'.repeat(32),
  requireSigner: async () => SIGNER,
  assets: names.map((referenceId) => ({
    referenceId,
    ownerAddress: SIGNER,
    tokenId: '1',
    amount: null,
    metadata: null,
  })),
});

it('a mint request above the limit on pending assets is rejected with details and costs no quota', async () => {
  const { claims, quotas } = createMemoryMints();
  const isLogApplied = async () => true;
  const accept = createAcceptMints({ claims, quotas, policy: POLICY, publish: async () => {}, isLogApplied });
  for (let at = 0; at < CALLS; at++) await accept(createRequest(createNames(String(at))));
  const refused = await accept(createRequest(['one'])).catch((fault: unknown) => fault);
  expect(refused).toMatchObject({
    code: 'TOO_MANY_REQUESTS_ERROR',
    details: { limit: 'pending_assets' },
    message: expect.stringContaining('pending assets'),
    retryAfterS: 60,
    quota: { remaining: expect.toSatisfy((remaining: number) => remaining >= 1_000_000 - CALLS) },
  });
  expect((await quotas.take('main', POLICY, 0)).remaining).toBeGreaterThanOrEqual(1_000_000 - CALLS);
});

it('claims without a published request count as pending until the log has been read, and then lapse', async () => {
  const namespace = `${randomUUID()}:`;
  const mints = await openRedisStore(redis.target, namespace);
  const [broker, log] = [{ isStopped: true }, { isApplied: async () => false }];
  const publish = async () => {
    if (broker.isStopped) throw new Error('no broker responds');
  };
  const isLogApplied = () => log.isApplied();
  const accept = createAcceptMints({ ...mints, policy: POLICY, publish, isLogApplied, lapseMs: -1 });
  for (let at = 0; at < CALLS; at++)
    await expect(accept(createRequest(createNames(String(at))))).rejects.toThrow('no broker responds');
  broker.isStopped = false;
  for (const isApplied of [async () => false, () => Promise.reject(new Error('no broker responds'))]) {
    log.isApplied = isApplied;
    await expect(accept(createRequest(['one']))).rejects.toMatchObject({ details: { limit: 'pending_assets' } });
    // Otherwise, claims would be cleaned only once a minute.
    await redis.client.del(`${namespace}mint:cleaned:main`);
  }
  log.isApplied = async () => true;
  await expect(accept(createRequest(['one']))).resolves.toMatchObject({ isAllowed: true });
});

async function restoreAll(view: MintView, states: readonly MintState[]): Promise<void> {
  for (let from = 0; from < states.length; from += 200) await view.restore(states.slice(from, from + 200));
}

it("Redis retains a project's latest settled assets, and only the claims of earlier minted assets", async () => {
  const namespace = `${randomUUID()}:`;
  const { claims, view } = await openRedisStore(redis.target, namespace);
  const names = Array.from({ length: SETTLED_LIMITS.assets + 200 }, (_, at) => `asset-${at}`);
  const states = names.map((name, at): MintState => {
    return { ...createFailedAsset(name, 'main-a'), status: at === 0 ? 'succeeded' : 'failed' };
  });
  await restoreAll(view, states);
  const keys = await redis.client.keys(`${namespace}mint:*:{*`);
  expect(keys.filter((key) => key.includes(':state:'))).toHaveLength(SETTLED_LIMITS.assets);
  const claimed = keys.filter((key) => key.includes(':claim:'));
  expect(claimed).toHaveLength(SETTLED_LIMITS.assets + 1);
  const scope = { ...COLLECTION, projectId: 'main' };
  expect(await claims.read(scope, 'asset-0')).toEqual({ state: null, isComplete: false });
  const claimAgain = (name: string) => claims.claim({ ...scope, environmentId: 'main-a' }, [createClaim(name)]);
  expect(await claimAgain('asset-0')).toMatchObject({ kind: 'taken' });
  expect(await claimAgain('asset-1')).toMatchObject({ kind: 'claimed' });
  // A rebuild reads the requests after their final states. No asset becomes pending again.
  const requests = states.map((state): MintState => ({ ...state, revision: 0, status: 'pending', error: null }));
  await restoreAll(view, requests);
  expect(await redis.client.hget(`${namespace}mint:pending:main`, 'assets')).toBe('1');
});

it('Redis retains fewer settled assets if their reference ids are long', async () => {
  const namespace = `${randomUUID()}:`;
  const { view } = await openRedisStore(redis.target, namespace);
  const names = Array.from({ length: SETTLED_LIMITS.assets / 2 }, (_, at) => `${'😀'.repeat(240)}-${at}`);
  await restoreAll(
    view,
    names.map((name) => createFailedAsset(name, 'main-a')),
  );
  expect((await redis.client.keys(`${namespace}mint:*:{*`)).length / 2).toBeLessThan(names.length);
  expect(Number(await redis.client.get(`${namespace}mint:settled-bytes:main`))).toSatisfy(
    (bytes: number) => bytes > SETTLED_LIMITS.bytes / 2 && bytes <= SETTLED_LIMITS.bytes,
  );
});

it("a project's mint requests are rejected while too many of its assets have failed within an hour", async () => {
  const mints = await openRedisStore(redis.target, `${randomUUID()}:`);
  const isLogApplied = async () => true;
  const accept = createAcceptMints({ ...mints, policy: POLICY, publish: async () => {}, isLogApplied });
  const fail = (count: number, ageMs: number) =>
    restoreAll(
      mints.view,
      Array.from({ length: count }, () => {
        return { ...createFailedAsset(randomUUID(), 'main-a'), changedAt: Date.now() - ageMs };
      }),
    );
  await fail(200, 2 * 60 * 60 * 1000);
  // A failure dated in the future counts as all the failures that the rate would allow up to that time.
  await fail(1, -((FAILED_PER_HOUR_MAX - 400) * 60 * 60 * 1000) / FAILED_PER_HOUR_MAX);
  await fail(200, 0);
  await accept(createRequest(['one']));
  await fail(300, 0);
  await expect(accept(createRequest(createNames('more').slice(0, 100)))).rejects.toMatchObject({
    code: 'TOO_MANY_REQUESTS_ERROR',
    details: { limit: 'failed_assets' },
    message: expect.stringContaining('have failed'),
    retryAfterS: expect.toSatisfy((seconds: number) => seconds > 0 && seconds <= 60),
  });
  expect((await claim(mints, 'other-a', ['one'], 'other')).kind).toBe('claimed');
});

it('while Redis is out of memory, it rejects mint requests and is not ready, but still applies the log', async () => {
  const url = openLimitedRedis();
  const client = new Redis(url, { retryStrategy: () => 25 });
  client.on('error', () => {});
  onTestFinished(() => client.disconnect());
  await until('Redis responds', async () => (await client.ping().catch(() => '')) === 'PONG');
  const store = await openRedisStore({ url });
  await fill(store, 'main-a');
  expect(await store.ready()).toBe(true);
  await client.config('SET', 'maxmemory', '1mb');
  await expect(claim(store, 'other-a', ['one'], 'other')).rejects.toThrow('OOM');
  expect(await store.ready()).toBe(false);
  const before = Number(await client.hget('mint:pending:main', 'assets'));
  await store.view.restore(createNames('main-a-0').map((name) => createFailedAsset(name, 'main-a')));
  expect(Number(await client.hget('mint:pending:main', 'assets'))).toBe(before - ASSETS_PER_CALL);
  await client.config('SET', 'maxmemory', '0');
  expect(await store.ready()).toBe(true);
});

/** Starts a separate Redis whose memory limit a test can change. @returns the path of its socket */
function openLimitedRedis(): string {
  const folder = mkdtempSync(join(tmpdir(), 'test-redis-'));
  const socket = join(folder, 'redis.sock');
  const options = ['--port', '0', '--unixsocket', socket, '--save', '', '--dir', folder];
  const child = spawn('redis-server', options, { stdio: 'ignore' });
  onTestFinished(() => {
    child.kill();
    rmSync(folder, { recursive: true, force: true });
  });
  return socket;
}
