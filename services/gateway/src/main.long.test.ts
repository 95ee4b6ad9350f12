import { setImmediate as nextTick } from 'node:timers/promises';
import { createKey, keysOfProject } from '@playline/access-keys';
import { openRedisKeyUsage } from '@playline/access-keys/redis';
import { FRAME_BYTES, messageRecordCodec } from '@playline/contracts';
import { openStoreProxy, type StoreProxy, testStores, until } from '@playline/testkit';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { message } from './test/open-gateway.ts';
import { type GatewayProcess, openProcess, openRealStores, type RealStores } from './test/open-process.ts';

let stores: RealStores;
let gateway: GatewayProcess | undefined;
let proxy: StoreProxy | undefined;
beforeAll(async () => {
  stores = await openRealStores();
});
afterAll(() => stores.close());
afterEach(async () => {
  await gateway?.close();
  await proxy?.close();
  gateway = undefined;
  proxy = undefined;
});

const idsIn = (values: Buffer[]) =>
  values.map((value) => messageRecordCodec.decode(value.subarray(FRAME_BYTES)).messageId.toString('hex'));
const toHexId = ({ messageId }: Record<string, unknown>) => String(messageId).replaceAll('-', '');
const batch = (messages: number) => ({ messages: Array.from({ length: messages }, () => message()) });

async function open(environment: Record<string, string> = {}): Promise<GatewayProcess> {
  gateway = await openProcess(stores.topicPrefix, environment);
  return gateway;
}

async function openReady(environment: Record<string, string> = {}): Promise<GatewayProcess> {
  const opened = await open(environment);
  await until('the gateway is ready', async () => (await fetch(`${opened.adminUrl}/readyz`)).ok);
  return opened;
}

async function readNotReady({ adminUrl }: GatewayProcess): Promise<unknown> {
  return ((await (await fetch(`${adminUrl}/readyz`)).json()) as { notReady: unknown }).notReady;
}

it('on SIGTERM under load, the gateway exits with 0, all acknowledged messages are on the log, and key usage is stored', async () => {
  const { child, post, close, adminUrl } = await openReady();
  const invalid = await post(stores.key, { messages: [message({ eventName: '' })] });
  const acknowledged: Record<string, unknown>[] = [];
  const otherStatuses: number[] = [];
  let refused = 0;
  const load = async () => {
    while (child.exitCode === null && refused < 100) {
      const body = batch(3);
      try {
        const { status } = await post(stores.key, body);
        if (status === 200) acknowledged.push(...body.messages);
        else otherStatuses.push(status);
      } catch {
        refused++;
        await nextTick();
      }
    }
  };
  const loads = Array.from({ length: 8 }, load);
  await until('the load is running', () => acknowledged.length > 200);
  const code = await close();
  await Promise.all(loads);
  expect(code).toBe(0);
  expect(otherStatuses).toEqual([]);
  await expect(fetch(`${adminUrl}/livez`)).rejects.toThrow();
  const stored = new Set(idsIn(await stores.readLog()));
  expect(acknowledged.filter((sent) => !stored.has(toHexId(sent)))).toEqual([]);

  const usage = await openRedisKeyUsage({ url: testStores().redis });
  const [{ keyId } = { keyId: '' }] = keysOfProject(await stores.store.readAll(), stores.owner.projectId);
  const use = (await usage.readKeys([keyId])).get(keyId)!;
  expect(use.usesOfHour).toBeGreaterThan(acknowledged.length / 3);
  const reason = 'ALL_MESSAGES_REJECTED';
  expect(use.lastRefusal).toMatchObject({ reason, traceId: invalid.headers.get('x-trace-id') });
  const { environmentId } = stores.owner;
  const minutes = (await usage.readEnvironments([environmentId], 5)).get(environmentId)!;
  const accepted = minutes.reduce((sum, minute) => sum + minute.accepted, 0);
  expect(accepted).toBeGreaterThanOrEqual(acknowledged.length);
  await usage.close();
});

it('without brokers, the gateway keeps running, reports the missing brokers and returns 500', async () => {
  const opened = await open({ KAFKA_BROKERS: '127.0.0.1:1', PUBLISH_DEADLINE_MS: '300' });
  await until('the other stores are connected', async () => String(await readNotReady(opened)) === 'broker');
  expect((await opened.post(stores.key, batch(1))).status).toBe(500);
  expect((await fetch(`${opened.adminUrl}/livez`)).status).toBe(200);
});

it('without a schema registry, the gateway reports the missing schemas and returns 500 until the registry is available', async () => {
  proxy = await openStoreProxy(Number(new URL(testStores().registry).port));
  proxy.mode = 'cut';
  const registry = new URL(testStores().registry);
  registry.port = String(proxy.port);
  const opened = await open({ SCHEMA_REGISTRY_URL: registry.href });
  await until('the other stores are connected', async () => String(await readNotReady(opened)) === 'schemas');
  expect((await opened.post(stores.key, batch(1))).status).toBe(500);
  proxy.mode = 'open';
  await until('the gateway is ready', async () => (await fetch(`${opened.adminUrl}/readyz`)).ok);
  expect((await opened.post(stores.key, batch(1))).status).toBe(200);
  proxy.mode = 'cut';
  expect((await opened.post(stores.key, batch(1))).status).toBe(200);
});

it('while Redis hangs or is unreachable, the gateway accepts messages with a cached key and returns 500 for other keys', async () => {
  const redis = new URL(testStores().redis);
  proxy = await openStoreProxy(Number(redis.port));
  redis.port = String(proxy.port);
  const opened = await openReady({ REDIS_URL: redis.href });
  expect((await opened.post(stores.key, batch(1))).status).toBe(200);
  for (const mode of ['hung', 'cut'] as const) {
    const owner = { ...stores.owner, environmentId: `${stores.owner.environmentId}-${mode}` };
    proxy.mode = mode;
    const { key: uncached } = await createKey({ store: stores.store, prefix: 'svcapik' }, owner);
    const end = Date.now() + 1500;
    while (Date.now() < end) expect((await opened.post(stores.key, batch(1))).status).toBe(200);
    expect((await opened.post(uncached, batch(1))).status).toBe(500);
    expect((await fetch(`${opened.adminUrl}/readyz`)).status).toBe(200);
    proxy.mode = 'open';
    await until('the uncached key is found', async () => (await opened.post(uncached, batch(1))).status === 200);
  }
});
