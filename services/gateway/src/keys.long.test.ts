import { connect } from 'node:net';
import {
  ACCESS_KEYS,
  createRecordLog,
  createRecordStore,
  RATE_LIMIT_KEYS,
  type RateLimitKeyRecord,
  setKeyEnd,
  ViewFault,
} from '@playline/access-keys';
import { openRedisRecords, type RedisRecordView } from '@playline/access-keys/redis';
import { createUnloggedStore } from '@playline/access-keys/test';
import { createSchemaRegistry, openLogReader, openProducer } from '@playline/stream/kafka';
import { openStoreProxy, sendUntilRefused, testStores, until } from '@playline/testkit';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { type KeyStores, openKeyStores } from './test/key-stores.ts';
import { KEY_HEADER, MESSAGES, message } from './test/open-gateway.ts';
import { type GatewayProcess, openProcess } from './test/open-process.ts';

const kind = RATE_LIMIT_KEYS;
let stores: KeyStores;
let view: RedisRecordView<RateLimitKeyRecord>;
let gateways: GatewayProcess[];
beforeAll(async () => {
  stores = await openKeyStores();
  view = await openRedisRecords(kind, { url: stores.redisUrl });
  gateways = await Promise.all([open(stores.noPubSubRedisUrl), open(stores.noPubSubRedisUrl)]);
});
afterAll(async () => {
  await Promise.all(gateways.map(({ close }) => close()));
  await view.close();
  await stores.close();
});

async function open(redisUrl: string, environment: Record<string, string> = {}): Promise<GatewayProcess> {
  const gateway = await openProcess(stores.topicPrefix, { REDIS_URL: redisUrl, ...environment });
  await until('the gateway is ready', async () => (await fetch(`${gateway.adminUrl}/readyz`)).ok);
  return gateway;
}

/** Opens a gateway whose connection to Redis the test can cut. */
async function openBehindProxy(environment: Record<string, string> = {}) {
  const redis = new URL(stores.redisUrl);
  const proxy = await openStoreProxy(Number(redis.port));
  onTestFinished(() => proxy.close());
  redis.port = String(proxy.port);
  const gateway = await open(redis.href, environment);
  onTestFinished(async () => void (await gateway.close()));
  return { gateway, proxy };
}

const toArgs = (environment: string, kind: string) => ['--environment', environment, '--kind', kind, '--json'];
const parseKey = (output: string) => (JSON.parse(output) as { key: string }).key;
const getPostStatus = async (gateway: GatewayProcess, key: string) =>
  (await gateway.post(key, { messages: [message()] })).status;

it('the Redis login of the test gateways allows neither publishing nor subscribing', async () => {
  const redis = new Redis(stores.noPubSubRedisUrl);
  onTestFinished(() => redis.disconnect());
  await expect(redis.publish('channel', 'message')).rejects.toThrow('NOPERM');
  await expect(redis.subscribe('channel')).rejects.toThrow('NOPERM');
});

it('without Redis pub/sub, two gateways under load refuse a refreshed key within a second and accept the new key', async () => {
  const oldKey = parseKey(await stores.keys('create', ...toArgs('production', 'publishable')));
  const load = gateways.map((gateway) => sendUntilRefused(() => getPostStatus(gateway, oldKey), 401));
  await until('both gateways accept the key', () => load.every(({ acceptedAt }) => acceptedAt() > 0));
  const successor = parseKey(await stores.keys('refresh', ...toArgs('production', 'publishable'), '--stops', 'now'));
  const refreshedAt = performance.now();
  await Promise.all(load.map(({ refused }) => refused));
  for (const { acceptedAt } of load) expect(acceptedAt() - refreshedAt).toBeLessThan(1000);
  for (const gateway of gateways) expect(await getPostStatus(gateway, successor)).toBe(200);
  for (const gateway of gateways) expect(await getPostStatus(gateway, oldKey)).toBe(401);
});

it('without Redis pub/sub, two gateways under load refuse a revoked key within a second', async () => {
  const key = parseKey(await stores.keys('create', ...toArgs('development', 'publishable')));
  const load = gateways.map((gateway) => sendUntilRefused(() => getPostStatus(gateway, key), 401));
  await until('both gateways accept the key', () => load.every(({ acceptedAt }) => acceptedAt() > 0));
  await stores.keys('revoke', ...toArgs('development', 'publishable'), '--stops', 'now');
  const revokedAt = performance.now();
  await Promise.all(load.map(({ refused }) => refused));
  for (const { acceptedAt } of load) expect(acceptedAt() - revokedAt).toBeLessThan(1000);
  for (const gateway of gateways) expect(await getPostStatus(gateway, key)).toBe(401);
});

it('two gateways under load accept a refreshed key until its end, refuse it within a second after, and lose no event of its successor', async () => {
  const created = JSON.parse(await stores.keys('create', ...toArgs('development', 'publishable')));
  const { key: oldKey, keyId } = created as { key: string; keyId: string };
  const args = toArgs('development', 'publishable');
  const successor = parseKey(await stores.keys('refresh', ...args, '--stops', '7d'));
  // A command may take longer than the time until the end.
  const keyView = await openRedisRecords(ACCESS_KEYS, { url: stores.redisUrl });
  onTestFinished(() => keyView.close());
  const [endsAtMs, endsAt] = [Date.now() + 5_000, performance.now() + 5_000];
  const owner = { environmentId: 'demo-development', keyId };
  await setKeyEnd({ store: createUnloggedStore(keyView) }, { ...owner, endsAt: endsAtMs });
  const load = gateways.map((gateway) => sendUntilRefused(() => getPostStatus(gateway, oldKey), 401));
  const statuses = new Set<number>();
  while (performance.now() < endsAt + 1_000)
    for (const gateway of gateways) statuses.add(await getPostStatus(gateway, successor));
  await Promise.all(load.map(({ refused }) => refused));
  expect([...statuses]).toEqual([200]);
  for (const { acceptedAt } of load) {
    expect(acceptedAt()).toBeGreaterThan(endsAt - 2_000);
    expect(acceptedAt()).toBeLessThan(endsAt + 1_000);
  }
});

/** Creates requests with `secret` in every position where a client can send a string. */
function createRequests(secret: string, key: string): { path: string; init: RequestInit }[] {
  const json = { 'content-type': 'application/json' };
  const validHeaders = { ...json, [KEY_HEADER]: key };
  const post = (headers: Record<string, string>, body: string, path = MESSAGES) => ({
    path,
    init: { method: 'POST', headers, body },
  });
  const batch = (fields: Record<string, unknown>) => JSON.stringify({ messages: [message(fields)] });
  const headers = ['x-service-api-key', 'x-api-key', 'authorization', 'cookie', 'traceparent', 'tracestate'];
  const contentHeaders = ['content-encoding', 'content-type', 'accept', 'user-agent', 'origin', 'referer', secret];
  const fields = ['type', 'eventTimestamp', 'eventName', 'userId', 'anonymousId', 'surface', 'consentLevel', 'context'];
  const context = { library: secret, libraryVersion: secret.repeat(9), userAgent: secret.repeat(99), [secret]: 1 };
  return [
    post({ ...json, [KEY_HEADER]: secret }, batch({})),
    post({ ...json, [KEY_HEADER]: `${secret}x` }, batch({})),
    ...[...headers, ...contentHeaders].map((name) => post({ ...validHeaders, [name]: secret }, batch({}))),
    ...fields.map((name) => post(validHeaders, batch({ [name]: secret }))),
    ...fields.map((name) => post(validHeaders, batch({ [name]: { [secret]: secret.repeat(20) } }))),
    post(validHeaders, batch({ context, properties: { [secret]: secret }, traits: { secret } })),
    post(validHeaders, batch({ context: { ...context, libraryVersion: '1' }, type: 'none' })),
    post(validHeaders, secret),
    post(validHeaders, `{"messages": [${secret}`),
    post(validHeaders, JSON.stringify({ [secret]: secret })),
    post(validHeaders, JSON.stringify({ messages: [secret, { [secret]: secret }] })),
    post(validHeaders, batch({}), `${MESSAGES}?key=${secret}`),
    post(validHeaders, batch({}), `${MESSAGES}/${secret}`),
    ...['/', '/%zz', '/v1/', '/v1/audience/', '/docs/errors/'].map((path) => ({ path: path + secret, init: {} })),
    ...['DELETE', 'POST', 'PUT'].map((method) => ({
      path: '/v1/audience/data',
      init: { method, headers: { ...json, 'x-service-api-key': secret }, body: JSON.stringify({ userId: secret }) },
    })),
    ...['data', 'tracking-consent'].flatMap((name) =>
      ['GET', 'PUT', 'DELETE'].map((method) => {
        const body = method === 'PUT' ? JSON.stringify({ anonymousId: secret, status: secret, source: secret }) : null;
        return { path: `/v1/audience/${name}?anonymousId=${secret}`, init: { method, headers: validHeaders, body } };
      }),
    ),
  ];
}

/** Sends bytes that no HTTP client would send. @returns everything received until the connection ends */
async function sendRaw(url: string, text: string): Promise<string> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.end(text);
  let response = '';
  for await (const chunk of socket) response += String(chunk);
  return response;
}

const formatResponse = async (response: Response) =>
  `${response.status} ${JSON.stringify([...response.headers])} ${await response.text()}`;

it('a secret key does not appear in any log, metric or response, wherever a request contains the key', async () => {
  const { gateway, proxy } = await openBehindProxy({ LOG_LEVEL: 'trace' });
  const secret = parseKey(await stores.keys('create', ...toArgs('production', 'secret')));
  const key = parseKey(await stores.keys('create', '--replace', ...toArgs('production', 'publishable')));
  const random = secret.slice(secret.indexOf('-') + 1);
  const responses: string[] = [];
  const postAll = async () => {
    const sent = createRequests(secret, key).flatMap(({ path, init }) =>
      [gateway.url, gateway.adminUrl].map(async (url) => formatResponse(await fetch(url + path, init))),
    );
    const texts = [`${secret} / HTTP/1.1\r\n\r\n`, `GET / HTTP/1.1\r\n${secret}\r\n\r\n`, secret];
    responses.push(...(await Promise.all([...sent, ...texts.map((text) => sendRaw(gateway.url, text))])));
  };

  await postAll();
  // The message id of a rejection is the only value that a response repeats unchanged.
  const echo = await gateway.post(key, { messages: [message({ messageId: secret })] });
  const { rejections, ...rest } = (await echo.json()) as { rejections: { messageId: string }[] };
  expect(rejections.map(({ messageId }) => messageId)).toEqual([secret]);
  responses.push(JSON.stringify([rest, rejections.map(({ messageId: _, ...others }) => others)]));
  // Errors have the longest log lines.
  proxy.mode = 'cut';
  await postAll();
  proxy.mode = 'open';
  responses.push(await (await fetch(`${gateway.adminUrl}/metrics`)).text());
  await gateway.close();

  expect(gateway.output()).toContain('"level":"error"');
  expect(gateway.output()).not.toContain(random);
  expect(responses.filter((text) => text.includes(random))).toEqual([]);
  expect(responses.length).toBeGreaterThan(100);
});

const limit = (...args: string[]) =>
  stores.projects('limit', '--project', 'demo', '--environment', 'production', ...args, '--json');
const readPolicy = async ({ post }: GatewayProcess, key: string) =>
  (await post(key, { messages: [message()] })).headers.get('ratelimit-policy');

it('two running gateways apply each change of a project’s rate within a second', async () => {
  const key = parseKey(await stores.keys('create', '--replace', ...toArgs('production', 'publishable')));
  const changes = [
    [['--cap', '600/1200'], '"messages";q=1200;w=2'],
    [['--limit', '6/12'], '"messages";q=12;w=2'],
    [['--cap', 'none', '--limit', 'none'], '"messages";q=10000;w=2'],
  ] as const;
  for (const [args, policy] of changes) {
    await limit(...args);
    const changedAt = performance.now();
    for (const gateway of gateways)
      await until('the gateway applies the rate', async () => (await readPolicy(gateway, key)) === policy);
    expect(performance.now() - changedAt).toBeLessThan(1000);
  }
});

it('a project’s rate is enforced, and the last known rate applies while Redis is unavailable', async () => {
  await limit('--cap', '1/3');
  const key = parseKey(await stores.keys('create', '--replace', ...toArgs('production', 'publishable')));
  const { gateway, proxy } = await openBehindProxy();
  await until('the gateway applies the rate', async () => (await readPolicy(gateway, key)) === '"messages";q=3;w=3');
  const { status } = await gateway.post(key, { messages: Array.from({ length: 9 }, () => message()) });
  expect(status).toBeLessThan(500);
  expect((await gateway.post(key, { messages: [message()] })).status).toBe(429);
  proxy.mode = 'cut';
  expect(await readPolicy(gateway, key)).toBe('"messages";q=3;w=3');
});

async function create(partner: string): Promise<RateLimitKeyRecord> {
  const args = ['create', '--kind', 'rate-limit', '--partner', partner, '--calls', '5', '--json'];
  return JSON.parse(await stores.keys(...args));
}

/** Returns the partners of all live keys, or null if the view cannot be read. */
async function readPartners(): Promise<string[] | null> {
  try {
    const { records } = await view.readSince(null);
    return records?.filter(({ revokedAt }) => revokedAt === null).map(({ partner }) => partner) ?? [];
  } catch {
    return null;
  }
}

/** Revokes a key like a command that crashes after writing to the log and before writing to Redis. */
async function revokeInLogOnly(keyId: string): Promise<void> {
  const { kafka: brokers, registry } = testStores();
  const topic = stores.topicPrefix + kind.topic;
  const schemas = createSchemaRegistry({ url: registry });
  const producer = await openProducer({ brokers, clientId: 'test', topics: [topic] });
  const reader = openLogReader({ brokers, clientId: 'test' });
  const log = createRecordLog({
    kind,
    schemaOf: schemas.schemaOf,
    schemaId: await schemas.idOf(`${topic}-value`, kind.codec.schema),
    bounds: () => reader.bounds(topic),
    read: (range) => reader.read({ topic, ...range }),
    send: (record) => producer.sendForOffset({ topic, ...record }),
  });
  const failingView = { ...view, update: () => Promise.reject(new Error('killed')) };
  const store = createRecordStore({ view: failingView, log }, { changedBy: 'ada', requestId: 'r' });
  const revoked = store.change((records) => ({ ...records.find((record) => record.keyId === keyId)!, revokedAt: 1 }));
  await expect(revoked).rejects.toThrow(ViewFault);
  await producer.close();
  await reader.close();
}

it('a running gateway restores access records after Redis was emptied', async () => {
  await create('Acme');
  const redis = new Redis(stores.redisUrl);
  onTestFinished(() => redis.disconnect());
  await redis.flushdb();
  await until('the keys are restored', async () => (await readPartners())?.includes('Acme') === true);
});

it('a running gateway applies a change whose command crashed between the log and Redis', async () => {
  const { keyId } = await create('Beta');
  await revokeInLogOnly(keyId);
  await until('the key is revoked', async () => (await readPartners())?.includes('Beta') === false);
});
