import { createKey, revokeKey } from '@playline/access-keys';
import { TOPICS } from '@playline/contracts';
import { readTopic } from '@playline/stream/kafka';
import {
  openStoreProxy,
  overrideWallClock,
  type StoreProxy,
  testStores,
  until,
  type WallClock,
} from '@playline/testkit';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { message } from './test/open-gateway.ts';
import { type GatewayProcess, openProcess, openRealStores, type RealStores } from './test/open-process.ts';

/** The gateway tolerates offsets of up to an hour. */
const NEARLY_AN_HOUR_MS = 59 * 60_000;
const HOUR_MS = 3_600_000;

let stores: RealStores;
let clock: WallClock;
let proxy: StoreProxy;
let gateway: GatewayProcess;
beforeAll(async () => {
  stores = await openRealStores();
  clock = overrideWallClock();
  const redis = new URL(testStores().redis);
  proxy = await openStoreProxy(Number(redis.port));
  redis.port = String(proxy.port);
  gateway = await openProcess(stores.topicPrefix, { ...clock.environment, REDIS_URL: redis.href });
  await until('the gateway is ready', async () => (await fetch(`${gateway.adminUrl}/readyz`)).ok);
});
afterEach(() => clock.set(gateway.child, 0));
afterAll(async () => {
  await gateway.close();
  await proxy.close();
  clock.close();
  await stores.close();
});

const post = async (key = stores.key) => (await gateway.post(key, { messages: [message()] })).status;

describe.each([
  ['back', -NEARLY_AN_HOUR_MS],
  ['forward', NEARLY_AN_HOUR_MS],
])('a gateway whose wall clock is set %s by 59 minutes', (_direction, shiftMs) => {
  it('refuses a revoked key within a second', async () => {
    const owner = { ...stores.owner, environmentId: `${stores.owner.environmentId}-${shiftMs}` };
    const { key } = await createKey({ store: stores.store, prefix: 'svcapik' }, owner);
    expect(await post(key)).toBe(200);
    await clock.set(gateway.child, shiftMs);
    await revokeKey({ store: stores.store }, owner);
    await until('the key is refused', async () => (await post(key)) === 401, 1000);
  });

  it('accepts messages with a cached key throughout a Redis outage', async () => {
    expect(await post()).toBe(200);
    proxy.mode = 'cut';
    await clock.set(gateway.child, shiftMs);
    const endMs = performance.now() + 1500;
    while (performance.now() < endMs) expect(await post()).toBe(200);
    proxy.mode = 'open';
    const owner = { ...stores.owner, environmentId: `${stores.owner.environmentId}-after-${shiftMs}` };
    const { key } = await createKey({ store: stores.store, prefix: 'svcapik' }, owner);
    await until('Redis is queried again', async () => (await post(key)) === 200, 2000);
  });

  it('accepts and stores messages', async () => {
    await clock.set(gateway.child, shiftMs);
    const before = (await stores.readLog()).length;
    for (let sent = 0; sent < 20; sent++)
      expect((await gateway.post(stores.key, createBatch(shiftMs))).status).toBe(200);
    expect((await stores.readLog()).length - before).toBe(20);
  });
});

it.each([
  ['3 h ahead', 3, '180 min ahead of'],
  ['5 days behind', -5 * 24, '7200 min behind'],
])(
  'a gateway whose wall clock is %s stores nothing and is not ready until the clock is corrected',
  async (_what, hours, reason) => {
    const shiftMs = hours * HOUR_MS;
    await clock.set(gateway.child, shiftMs);
    await until(
      'the clocks are compared',
      async () => (await gateway.post(stores.key, createBatch(shiftMs))).status === 500,
    );
    const stored = (await stores.readLog()).length;
    expect((await gateway.post(stores.key, createBatch(shiftMs))).status).toBe(500);
    expect((await stores.readLog()).length).toBe(stored);
    const ready = await fetch(`${gateway.adminUrl}/readyz`);
    expect(ready.status).toBe(503);
    expect(await ready.json()).toMatchObject({
      notReady: ['clock'],
      reasons: { clock: expect.stringContaining(reason) },
    });
    await clock.set(gateway.child, 0);
    await until('the gateway is ready', async () => (await fetch(`${gateway.adminUrl}/readyz`)).ok);
    expect(await post()).toBe(200);
  },
);

it.each([NEARLY_AN_HOUR_MS, -NEARLY_AN_HOUR_MS])(
  'records from a gateway whose clock is off by %i ms have the broker’s timestamp',
  async (shiftMs) => {
    await clock.set(gateway.child, shiftMs);
    const before = Date.now();
    expect((await gateway.post(stores.key, createBatch(shiftMs))).status).toBe(200);
    const topic = stores.topicPrefix + TOPICS.messages.name;
    const times = (await readTopic({ brokers: testStores().kafka, topic })).map(({ timestampMs }) => timestampMs);
    expect(Math.abs(Math.max(...times) - before)).toBeLessThan(NEARLY_AN_HOUR_MS / 2);
  },
);

/** Creates a batch with the current time of the gateway's shifted clock. */
function createBatch(shiftMs: number) {
  return { messages: [message({ eventTimestamp: new Date(Date.now() + shiftMs).toISOString() })] };
}
