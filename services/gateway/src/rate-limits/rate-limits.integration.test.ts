import { openStoreProxy, type StoreProxy, testStores, until } from '@playline/testkit';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { message } from '../test/open-gateway.ts';
import { type GatewayProcess, openProcess, openRealStores, type RealStores } from '../test/open-process.ts';

let stores: RealStores;
let proxy: StoreProxy | undefined;
const gateways: GatewayProcess[] = [];
beforeAll(async () => {
  stores = await openRealStores();
});
afterAll(() => stores.close());
afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.close();
  await proxy?.close();
});

/** The refill is too slow to matter during a test. */
const RATE = { RATE_LIMIT_MESSAGES_PER_S: '1', RATE_LIMIT_BURST: '300' };
const batch = (messages: number) => ({ messages: Array.from({ length: messages }, () => message()) });
const parseRemaining = (response: Response) => Number(/r=(\d+)/.exec(response.headers.get('ratelimit') ?? '')?.[1]);

async function openReady(environment: Record<string, string> = {}): Promise<GatewayProcess> {
  const gateway = await openProcess(stores.topicPrefix, { ...RATE, ...environment });
  gateways.push(gateway);
  await until('the gateway is ready', async () => (await fetch(`${gateway.adminUrl}/readyz`)).ok);
  return gateway;
}

async function readSharedMetric({ adminUrl }: GatewayProcess): Promise<string> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text();
  return /^playline_gateway_rate_limit_shared\{.*\} (\d)$/m.exec(text)?.[1] ?? '';
}

it('gateways share the message count of a key through Redis, and count separately while Redis is unavailable', async () => {
  const redis = new URL(testStores().redis);
  proxy = await openStoreProxy(Number(redis.port));
  redis.port = String(proxy.port);
  const [first, second] = [await openReady(), await openReady({ REDIS_URL: redis.href })];
  expect((await first.post(stores.key, batch(100))).status).toBe(200);
  expect((await first.post(stores.key, batch(100))).status).toBe(200);
  await until('the second gateway has the balance', async () => {
    const response = await second.post(stores.key, batch(1));
    return response.status === 200 && parseRemaining(response) < 105;
  });

  proxy.mode = 'cut';
  await until('the limit is local', async () => {
    await second.post(stores.key, batch(1));
    return (await readSharedMetric(second)) === '0';
  });
  const alone = await second.post(stores.key, batch(1));
  expect(alone.status).toBe(200);
  expect(alone.headers.get('ratelimit-policy')).toBe('"messages";q=300;w=300');
  expect((await first.post(stores.key, batch(100))).status).toBe(200);
  expect((await first.post(stores.key, batch(100))).status).toBe(429);

  proxy.mode = 'open';
  await until('the limit is shared again', async () => (await second.post(stores.key, batch(1))).status === 429, 1000);
  expect(await readSharedMetric(second)).toBe('1');
});
