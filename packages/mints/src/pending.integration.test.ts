import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openRedisDatabase, type RedisDatabase, until } from '@playline/testkit';
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

async function openRedisStore(url: string, namespace = ''): Promise<RedisMints> {
  const mints = await openRedisMints({ url, namespace });
  onTestFinished(() => mints.close());
  await mints.view.complete((await mints.view.progress()).run);
  return mints;
}

const claimOf = (referenceId: string) => ({
  referenceId,
  attemptId: randomUUID().replaceAll('-', ''),
  signer: SIGNER,
  digest: '0'.repeat(32),
});

async function claim({ claims }: Store, environmentId: string, names: readonly string[], projectId = 'own') {
  return claims.claim({ ...COLLECTION, projectId, environmentId }, names.map(claimOf));
}

const namesOf = (batch: string) => Array.from({ length: ASSETS_PER_CALL }, (_, at) => `${batch}-${at}`);

async function fill(store: Store, environmentId: string): Promise<void> {
  for (let batch = 0; batch < CALLS; batch++)
    expect((await claim(store, environmentId, namesOf(`${environmentId}-${batch}`))).kind).toBe('claimed');
}

const failedOf = (referenceId: string, environmentId: string): MintState => ({
  ...COLLECTION,
  referenceId,
  attemptId: randomUUID().replaceAll('-', ''),
  signer: SIGNER,
  projectId: 'own',
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
  { name: 'Redis', open: (): Promise<Store> => openRedisStore(redis.url, `${randomUUID()}:`) },
])('pending assets in $name', ({ open }) => {
  it('pending assets are limited per environment and project, and a settled asset frees capacity', async () => {
    const store = await open();
    await fill(store, 'own-a');
    expect(await claim(store, 'own-a', ['one'])).toMatchObject({ kind: 'full' });
    // A retried request reuses its claims, and other projects are not affected.
    expect((await claim(store, 'own-a', namesOf('own-a-0'))).kind).toBe('claimed');
    expect((await claim(store, 'other-a', ['one'], 'other')).kind).toBe('claimed');
    await fill(store, 'own-b');
    expect(await claim(store, 'own-c', ['one'])).toMatchObject({ kind: 'full' });
    await store.view.restore(namesOf('own-a-0').map((name) => failedOf(name, 'own-a')));
    expect((await claim(store, 'own-a', namesOf('again'))).kind).toBe('claimed');
    expect(await claim(store, 'own-a', ['one'])).toMatchObject({ kind: 'full' });
  });

  it('pending assets are also limited by bytes, so fewer assets with long reference ids fit', async () => {
    const store = await open();
    const longNamesOf = (batch: number) => namesOf(String(batch)).map((name) => '😀'.repeat(240) + name);
    let accepted = 0;
    for (let batch = 0; batch < CALLS; batch++)
      if ((await claim(store, 'own-a', longNamesOf(batch))).kind === 'claimed') accepted += ASSETS_PER_CALL;
    expect(accepted).toBeGreaterThan(PENDING_LIMITS.environment.assets / 5);
    expect(accepted).toBeLessThan(PENDING_LIMITS.environment.assets / 2);
  });
});

const POLICY = { kind: 'mint', perSecond: 1, burst: 1_000_000 } as const;

const requestOf = (names: readonly string[]) => ({
  collection: COLLECTION,
  projectId: 'own',
  environmentId: 'own-a',
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
  for (let at = 0; at < CALLS; at++) await accept(requestOf(namesOf(String(at))));
  const refused = await accept(requestOf(['one'])).catch((fault: unknown) => fault);
  expect(refused).toMatchObject({
    code: 'TOO_MANY_REQUESTS_ERROR',
    details: { limit: 'pending_assets' },
    message: expect.stringContaining('pending assets'),
    retryAfterS: 60,
    quota: { remaining: expect.toSatisfy((remaining: number) => remaining >= 1_000_000 - CALLS) },
  });
  expect((await quotas.take('own', POLICY, 0)).remaining).toBeGreaterThanOrEqual(1_000_000 - CALLS);
});

it('claims without a published request count as pending until the log has been read, and then lapse', async () => {
  const namespace = `${randomUUID()}:`;
  const mints = await openRedisStore(redis.url, namespace);
  const [broker, log] = [{ isStopped: true }, { isApplied: async () => false }];
  const publish = async () => {
    if (broker.isStopped) throw new Error('no broker responds');
  };
  const isLogApplied = () => log.isApplied();
  const accept = createAcceptMints({ ...mints, policy: POLICY, publish, isLogApplied, lapseMs: -1 });
  for (let at = 0; at < CALLS; at++)
    await expect(accept(requestOf(namesOf(String(at))))).rejects.toThrow('no broker responds');
  broker.isStopped = false;
  for (const isApplied of [async () => false, () => Promise.reject(new Error('no broker responds'))]) {
    log.isApplied = isApplied;
    await expect(accept(requestOf(['one']))).rejects.toMatchObject({ details: { limit: 'pending_assets' } });
    // Otherwise, claims would be cleaned only once a minute.
    await redis.client.del(`${namespace}mint:cleaned:own`);
  }
  log.isApplied = async () => true;
  await expect(accept(requestOf(['one']))).resolves.toMatchObject({ isAllowed: true });
});

async function restoreAll(view: MintView, states: readonly MintState[]): Promise<void> {
  for (let from = 0; from < states.length; from += 200) await view.restore(states.slice(from, from + 200));
}

it("Redis retains a project's latest settled assets, and only the claims of earlier minted assets", async () => {
  const namespace = `${randomUUID()}:`;
  const { claims, view } = await openRedisStore(redis.url, namespace);
  const names = Array.from({ length: SETTLED_LIMITS.assets + 200 }, (_, at) => `asset-${at}`);
  const states = names.map((name, at): MintState => {
    return { ...failedOf(name, 'own-a'), status: at === 0 ? 'succeeded' : 'failed' };
  });
  await restoreAll(view, states);
  const keys = await redis.client.keys(`${namespace}mint:*:{*`);
  expect(keys.filter((key) => key.includes(':state:'))).toHaveLength(SETTLED_LIMITS.assets);
  const claimed = keys.filter((key) => key.includes(':claim:'));
  expect(claimed).toHaveLength(SETTLED_LIMITS.assets + 1);
  const scope = { ...COLLECTION, projectId: 'own' };
  expect(await claims.read(scope, 'asset-0')).toEqual({ state: null, isComplete: false });
  const claimAgain = (name: string) => claims.claim({ ...scope, environmentId: 'own-a' }, [claimOf(name)]);
  expect(await claimAgain('asset-0')).toMatchObject({ kind: 'taken' });
  expect(await claimAgain('asset-1')).toMatchObject({ kind: 'claimed' });
  // A rebuild reads the requests after their final states. No asset becomes pending again.
  const requests = states.map((state): MintState => ({ ...state, revision: 0, status: 'pending', error: null }));
  await restoreAll(view, requests);
  expect(await redis.client.hget(`${namespace}mint:pending:own`, 'assets')).toBe('1');
});

it('Redis retains fewer settled assets if their reference ids are long', async () => {
  const namespace = `${randomUUID()}:`;
  const { view } = await openRedisStore(redis.url, namespace);
  const names = Array.from({ length: SETTLED_LIMITS.assets / 2 }, (_, at) => `${'😀'.repeat(240)}-${at}`);
  await restoreAll(
    view,
    names.map((name) => failedOf(name, 'own-a')),
  );
  expect((await redis.client.keys(`${namespace}mint:*:{*`)).length / 2).toBeLessThan(names.length);
  expect(Number(await redis.client.get(`${namespace}mint:settled-bytes:own`))).toSatisfy(
    (bytes: number) => bytes > SETTLED_LIMITS.bytes / 2 && bytes <= SETTLED_LIMITS.bytes,
  );
});

it("a project's mint requests are rejected while too many of its assets have failed within an hour", async () => {
  const mints = await openRedisStore(redis.url, `${randomUUID()}:`);
  const isLogApplied = async () => true;
  const accept = createAcceptMints({ ...mints, policy: POLICY, publish: async () => {}, isLogApplied });
  const fail = (count: number, ageMs: number) =>
    restoreAll(
      mints.view,
      Array.from({ length: count }, () => {
        return { ...failedOf(randomUUID(), 'own-a'), changedAt: Date.now() - ageMs };
      }),
    );
  await fail(200, 2 * 60 * 60 * 1000);
  // A failure with a future time counts as all the failures that would be allowed until then.
  await fail(1, -((FAILED_PER_HOUR_MAX - 400) * 60 * 60 * 1000) / FAILED_PER_HOUR_MAX);
  await fail(200, 0);
  await accept(requestOf(['one']));
  await fail(300, 0);
  await expect(accept(requestOf(namesOf('more').slice(0, 100)))).rejects.toMatchObject({
    code: 'TOO_MANY_REQUESTS_ERROR',
    details: { limit: 'failed_assets' },
    message: expect.stringContaining('have failed'),
    retryAfterS: expect.toSatisfy((seconds: number) => seconds > 0 && seconds <= 60),
  });
  expect((await claim(mints, 'other-a', ['one'], 'other')).kind).toBe('claimed');
});

it('a Redis that is out of memory rejects mint requests and is not ready, but still applies the log', async () => {
  const url = openLimitedRedis();
  const client = new Redis(url, { retryStrategy: () => 25 });
  client.on('error', () => {});
  onTestFinished(() => client.disconnect());
  await until('Redis responds', async () => (await client.ping().catch(() => '')) === 'PONG');
  const store = await openRedisStore(url);
  await fill(store, 'own-a');
  expect(await store.ready()).toBe(true);
  await client.config('SET', 'maxmemory', '1mb');
  await expect(claim(store, 'other-a', ['one'], 'other')).rejects.toThrow('OOM');
  expect(await store.ready()).toBe(false);
  const before = Number(await client.hget('mint:pending:own', 'assets'));
  await store.view.restore(namesOf('own-a-0').map((name) => failedOf(name, 'own-a')));
  expect(Number(await client.hget('mint:pending:own', 'assets'))).toBe(before - ASSETS_PER_CALL);
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
