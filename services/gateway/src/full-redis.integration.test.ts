import { openRedisPeople } from '@playline/people/redis';
import { VERSION } from '@playline/runtime';
import { until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { consentChange, putConsent } from './test/audience-calls.ts';
import { type CrashableRedis, openCrashableRedis } from './test/crashable-redis.ts';
import { type KeyStores, openKeyStores } from './test/key-stores.ts';
import { message } from './test/open-gateway.ts';
import { type GatewayProcess, openProcess } from './test/open-process.ts';

let redis: CrashableRedis;
let stores: KeyStores;
let gateway: GatewayProcess;
let key: string;
beforeAll(async () => {
  redis = await openCrashableRedis();
  stores = await openKeyStores({ redisUrl: redis.url });
  const people = await openRedisPeople({ url: redis.url });
  await people.rebuild.mintEpoch();
  await people.close();
  const args = ['create', '--environment', 'development', '--kind', 'publishable', '--json'];
  key = (JSON.parse(await stores.keys(...args)) as { key: string }).key;
  gateway = await openProcess(stores.topicPrefix, { REDIS_URL: redis.url });
  await until('the gateway is ready', async () => (await readReadiness()).status === 200);
});
afterAll(async () => {
  await gateway?.close();
  await stores?.close();
  await redis?.close();
});

async function readReadiness(): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${gateway.adminUrl}/readyz`);
  return { status: response.status, body: await response.json() };
}

async function readWritableMetric(): Promise<string | undefined> {
  const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  return /^playline_redis_takes_writes\{[^}]*\} (\d)$/m.exec(text)?.[1];
}

const getPutConsentStatus = async () => (await putConsent({ url: gateway.url, key }, consentChange())).status;

it('if Redis is full, ingest continues, a metric reports the failure, and readiness explains how to fix it', async () => {
  await until('a consent is stored', async () => (await getPutConsentStatus()) === 204);
  expect(await readReadiness()).toEqual({ status: 200, body: { ready: true, version: VERSION, notReady: [] } });
  expect(await readWritableMetric()).toBe('1');

  // Less than an empty Redis needs, so Redis refuses all writes.
  await redis.client.config('SET', 'maxmemory', '1kb');
  expect(await getPutConsentStatus()).toBe(500);
  expect(await readReadiness()).toEqual({
    status: 200,
    body: {
      ready: true,
      version: VERSION,
      notReady: [],
      degraded: ['consentsAndErasures'],
      reasons: { Redis: 'Redis rejects writes (OOM): it is full; raise its maxmemory, or delete data' },
    },
  });
  expect(await readWritableMetric()).toBe('0');
  expect((await gateway.post(key, { messages: [message()] })).status).toBe(200);

  await redis.client.config('SET', 'maxmemory', '0');
  await until('a consent is stored again', async () => (await getPutConsentStatus()) === 204);
  expect(await readReadiness()).toEqual({ status: 200, body: { ready: true, version: VERSION, notReady: [] } });
  expect(await readWritableMetric()).toBe('1');
});

it('if Redis was emptied, ingest continues, and readiness reports the command that restores the data', async () => {
  await redis.client.del('identity:epoch');
  const { status, body } = await readReadiness();
  expect([status, body]).toEqual([
    200,
    expect.objectContaining({
      degraded: ['consentsAndErasures'],
      reasons: { Redis: expect.stringContaining('npm run rebuild') },
    }),
  ]);
  expect((await gateway.post(key, { messages: [message()] })).status).toBe(200);
});
