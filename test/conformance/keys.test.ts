// Contract, "Keys" and the row "Missing key" in "Rules of a batch". services/gateway/src/keys.long.test.ts tests that
// changes apply within a second.
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import {
  ACCESS_KEYS,
  type AccessKeyRecord,
  createKey,
  keysOfProject,
  type NewKey,
  type RecordStore,
  refreshKey,
  revokeKey,
} from '@playline/access-keys';
import { openRedisRecords, type RedisRecordView } from '@playline/access-keys/redis';
import { createUnloggedStore } from '@playline/access-keys/test';
import { openStoreProxy, type StoreProxy, testStores, until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  type Client,
  DATA_PATH,
  expectAccepted,
  expectEnvelope,
  expectRejected,
  MESSAGES_PATH,
  track,
} from './client.ts';
import { type ConformanceGateway, START_MAX_MS, startGateway } from './gateway.ts';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

let proxy: StoreProxy;
let view: RedisRecordView<AccessKeyRecord>;
let store: RecordStore<AccessKeyRecord>;
let client: Client & ConformanceGateway;
beforeAll(async () => {
  const redis = new URL(testStores().redis);
  proxy = await openStoreProxy(Number(redis.port));
  redis.port = String(proxy.port);
  view = await openRedisRecords(ACCESS_KEYS, { url: testStores().redis });
  store = createUnloggedStore(view);
  client = await startGateway({ REDIS_URL: redis.href, LOG_LEVEL: 'fatal' });
}, START_MAX_MS);
afterAll(async () => {
  await client.close();
  await view.close();
  await proxy.close();
});

const ownerOf = (name: string): Omit<NewKey, 'kind'> => {
  const projectId = `${client.environmentId}-${name}`;
  return { projectId, environmentId: projectId, environment: 'development' };
};
const context = () => ({ store, prefix: 'svcapik' });
const send = (key: string) => client.post({ messages: [track()] }, { 'x-service-publishable-key': key });

it('a key consists of a prefix for its kind and environment, 30 base62 characters, and a CRC32 in 6 characters', () => {
  const keys = [
    [client.publishableKey, 'pk_svcapik-'],
    [client.secretKey, 'sk_svcapik-'],
    [client.otherPublishableKey, 'pk_svcapik_test-'],
    [client.replacedSecretKey, 'sk_svcapik_test-'],
  ] as const;
  for (const [key, prefix] of keys) {
    expect(key.startsWith(prefix)).toBe(true);
    expect(key.slice(prefix.length)).toMatch(/^[0-9A-Za-z]{36}$/);
    const value = [...key.slice(-6)].reduce((sum, character) => sum * 62 + BASE62.indexOf(character), 0);
    expect(value).toBe(crc32(key.slice(0, -6)));
  }
});

it('a key with a wrong checksum returns 401 without a lookup, even while Redis is unavailable', async () => {
  const { publishableKey: key } = client;
  const wrongKey = key.slice(0, -1) + (key.endsWith('0') ? '1' : '0');
  proxy.mode = 'cut';
  expectEnvelope(await send(wrongKey), 401, 'UNAUTHORISED_REQUEST');
  proxy.mode = 'open';
});

it('a key is stored as a SHA-256 hash with its last four characters', async () => {
  const owner = { ...ownerOf('stored'), kind: 'secret' } as const;
  const { key } = await createKey(context(), owner);
  const records = keysOfProject(await store.readAll(), owner.projectId);
  const hash = createHash('sha256').update(key).digest('hex');
  expect(records).toMatchObject([{ hash, last4: key.slice(-4) }]);
  expect(JSON.stringify(records)).not.toContain(key.slice(0, -4));
});

it('after a refresh, a running gateway refuses the old key and accepts the new key', async () => {
  const owner = { ...ownerOf('refreshed'), kind: 'publishable' } as const;
  const { key: oldKey } = await createKey(context(), owner);
  await until('the key is accepted', async () => (await send(oldKey)).status === 200);
  const { key } = await refreshKey(context(), owner);
  const refused = await until('the old key is refused', async () => {
    const response = await send(oldKey);
    return response.status === 200 ? null : response;
  });
  expectEnvelope(refused, 401, 'UNAUTHORISED_REQUEST');
  expectAccepted(await send(key));
});

it('an erasure with a revoked secret key returns 401', async () => {
  const owner = { ...ownerOf('revoked'), kind: 'secret' } as const;
  const { key } = await createKey(context(), owner);
  const erase = () =>
    client.request(`${DATA_PATH}?userId=u`, { method: 'DELETE', headers: { 'x-service-api-key': key } });
  await until('the key is accepted', async () => (await erase()).status === 202);
  await revokeKey(context(), owner);
  const refused = await until('the key is refused', async () => {
    const response = await erase();
    return response.status === 202 ? null : response;
  });
  expectEnvelope(refused, 401, 'UNAUTHORISED_REQUEST');
});

it('while Redis is unavailable, cached keys stay valid, and any other key returns 500 instead of 401', async () => {
  expectAccepted(await send(client.publishableKey));
  proxy.mode = 'cut';
  const newKey = await createKey(context(), { ...ownerOf('fresh'), kind: 'publishable' });
  try {
    expectEnvelope(await send(newKey.key), 500, 'INTERNAL_SERVER_ERROR');
    expectAccepted(await send(client.publishableKey));
  } finally {
    proxy.mode = 'open';
  }
  await until('the new key is accepted', async () => (await send(newKey.key)).status === 200);
});

it(
  'header names, key prefixes and the time window are configurable',
  async () => {
    const other = await startGateway({
      HTTP_HEADER_PREFIX: 'x-studio',
      ACCESS_KEY_PREFIX: 'studio',
      EVENT_AGE_MAX_MS: '60000',
      EVENT_AHEAD_MAX_MS: '60000',
    });
    try {
      const owner = { ...ownerOf('studio'), kind: 'publishable' } as const;
      const { key } = await createKey({ store, prefix: 'studio' }, owner);
      expect(key).toMatch(/^pk_studio_test-/);
      const post = (headers: Record<string, string>, sent = track()) =>
        other.request(MESSAGES_PATH, {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...headers },
          body: JSON.stringify({ messages: [sent] }),
        });
      expectAccepted(await post({ 'x-studio-publishable-key': key }));
      for (const offsetMs of [-90_000, 90_000]) {
        const sent = track({ eventTimestamp: new Date(Date.now() + offsetMs).toISOString() });
        expectRejected(await post({ 'x-studio-publishable-key': key }, sent), 'INVALID_VALUE eventTimestamp');
      }
      const missing = await post({ 'x-service-publishable-key': key });
      expectEnvelope(missing, 400, 'VALIDATION_ERROR');
      expect(missing.body.details).toMatchObject({ header: 'x-studio-publishable-key' });
      expectEnvelope(await post({ 'x-studio-publishable-key': other.publishableKey }), 401, 'UNAUTHORISED_REQUEST');
    } finally {
      await other.close();
    }
  },
  START_MAX_MS,
);
