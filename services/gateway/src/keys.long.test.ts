import { connect } from 'node:net';
import {
  createRecordLog,
  createRecordStore,
  RATE_LIMIT_KEYS,
  type RateLimitKeyRecord,
  ViewFault,
} from '@playline/access-keys';
import { openRedisRecords, type RedisRecordView } from '@playline/access-keys/redis';
import { createSchemaRegistry, openLogReader, openProducer } from '@playline/stream/kafka';
import { openWire, sendUntilRefused, testStores, until } from '@playline/testkit';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { type KeyStores, openKeyStores } from './test/key-stores.ts';
import { KEY_HEADER, MESSAGES, message } from './test/open-gateway.ts';
import { type GatewayProcess, openProcess } from './test/open-process.ts';

const kind = RATE_LIMIT_KEYS;
let stores: KeyStores;
let view: RedisRecordView<RateLimitKeyRecord>;
/** Run through the whole file. */
let gateways: GatewayProcess[];
beforeAll(async () => {
  stores = await openKeyStores();
  view = await openRedisRecords(kind, { url: stores.redisUrl });
  gateways = await Promise.all([open(stores.mutedRedisUrl), open(stores.mutedRedisUrl)]);
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
async function openOnWire(environment: Record<string, string> = {}) {
  const redis = new URL(stores.redisUrl);
  const wire = await openWire(Number(redis.port));
  onTestFinished(() => wire.close());
  redis.port = String(wire.port);
  const gateway = await open(redis.href, environment);
  onTestFinished(async () => void (await gateway.close()));
  return { gateway, wire };
}

const of = (environment: string, kind: string) => ['--environment', environment, '--kind', kind, '--json'];
const keyIn = (printed: string) => (JSON.parse(printed) as { key: string }).key;
const statusOf = async (gateway: GatewayProcess, key: string) =>
  (await gateway.post(key, { messages: [message()] })).status;

it('keys on two running gateways, with Redis pub/sub cut off lets neither gateway publish or subscribe', async () => {
  const redis = new Redis(stores.mutedRedisUrl);
  onTestFinished(() => redis.disconnect());
  await expect(redis.publish('any', 'word')).rejects.toThrow('NOPERM');
  await expect(redis.subscribe('any')).rejects.toThrow('NOPERM');
});

it('keys on two running gateways, with Redis pub/sub cut off ends a refreshed key on both within a second under load, and both take its successor', async () => {
  const old = keyIn(await stores.keys('create', ...of('production', 'publishable')));
  const load = gateways.map((gateway) => sendUntilRefused(() => statusOf(gateway, old), 401));
  await until('both take the key', () => load.every(({ takenAt }) => takenAt() > 0));
  const successor = keyIn(await stores.keys('refresh', ...of('production', 'publishable')));
  const refreshedAt = performance.now();
  await Promise.all(load.map(({ refused }) => refused));
  for (const { takenAt } of load) expect(takenAt() - refreshedAt).toBeLessThan(1000);
  for (const gateway of gateways) expect(await statusOf(gateway, successor)).toBe(200);
  for (const gateway of gateways) expect(await statusOf(gateway, old)).toBe(401);
});

it('keys on two running gateways, with Redis pub/sub cut off ends a revoked key on both within a second under load', async () => {
  const key = keyIn(await stores.keys('create', ...of('development', 'publishable')));
  const load = gateways.map((gateway) => sendUntilRefused(() => statusOf(gateway, key), 401));
  await until('both take the key', () => load.every(({ takenAt }) => takenAt() > 0));
  await stores.keys('revoke', ...of('development', 'publishable'));
  const revokedAt = performance.now();
  await Promise.all(load.map(({ refused }) => refused));
  for (const { takenAt } of load) expect(takenAt() - revokedAt).toBeLessThan(1000);
  for (const gateway of gateways) expect(await statusOf(gateway, key)).toBe(401);
});

/** One request for each part in which a caller can put text, with `secret` in it. */
function requestsWith(secret: string, key: string): { path: string; init: RequestInit }[] {
  const json = { 'content-type': 'application/json' };
  const good = { ...json, [KEY_HEADER]: key };
  const post = (headers: Record<string, string>, body: string, path = MESSAGES) => ({
    path,
    init: { method: 'POST', headers, body },
  });
  const batch = (fields: Record<string, unknown>) => JSON.stringify({ messages: [message(fields)] });
  const headers = ['x-service-api-key', 'x-api-key', 'authorization', 'cookie', 'traceparent', 'tracestate'];
  const headersOfBody = ['content-encoding', 'content-type', 'accept', 'user-agent', 'origin', 'referer', secret];
  const fields = ['type', 'eventTimestamp', 'eventName', 'userId', 'anonymousId', 'surface', 'consentLevel', 'context'];
  const context = { library: secret, libraryVersion: secret.repeat(9), userAgent: secret.repeat(99), [secret]: 1 };
  return [
    post({ ...json, [KEY_HEADER]: secret }, batch({})),
    post({ ...json, [KEY_HEADER]: `${secret}x` }, batch({})),
    ...[...headers, ...headersOfBody].map((name) => post({ ...good, [name]: secret }, batch({}))),
    ...fields.map((name) => post(good, batch({ [name]: secret }))),
    ...fields.map((name) => post(good, batch({ [name]: { [secret]: secret.repeat(20) } }))),
    post(good, batch({ context, properties: { [secret]: secret }, traits: { secret } })),
    post(good, batch({ context: { ...context, libraryVersion: '1' }, type: 'none' })),
    post(good, secret),
    post(good, `{"messages": [${secret}`),
    post(good, JSON.stringify({ [secret]: secret })),
    post(good, JSON.stringify({ messages: [secret, { [secret]: secret }] })),
    post(good, batch({}), `${MESSAGES}?key=${secret}`),
    post(good, batch({}), `${MESSAGES}/${secret}`),
    ...['/', '/%zz', '/v1/', '/v1/audience/', '/docs/errors/'].map((path) => ({ path: path + secret, init: {} })),
    ...['DELETE', 'POST', 'PUT'].map((method) => ({
      path: '/v1/audience/data',
      init: { method, headers: { ...json, 'x-service-api-key': secret }, body: JSON.stringify({ userId: secret }) },
    })),
    ...['data', 'tracking-consent'].flatMap((name) =>
      ['GET', 'PUT', 'DELETE'].map((method) => {
        const body = method === 'PUT' ? JSON.stringify({ anonymousId: secret, status: secret, source: secret }) : null;
        return { path: `/v1/audience/${name}?anonymousId=${secret}`, init: { method, headers: good, body } };
      }),
    ),
  ];
}

/** Sends bytes that no HTTP client would send. @returns what comes back until the connection ends */
async function sendRaw(url: string, text: string): Promise<string> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.end(text);
  let answer = '';
  for await (const chunk of socket) answer += String(chunk);
  return answer;
}

const textOf = async (answer: Response) =>
  `${answer.status} ${JSON.stringify([...answer.headers])} ${await answer.text()}`;

it('a secret key that is put everywhere appears in no log, metric or answer, whatever the outcome of the request', async () => {
  const { gateway, wire } = await openOnWire({ LOG_LEVEL: 'trace' });
  const secret = keyIn(await stores.keys('create', ...of('production', 'secret')));
  const key = keyIn(await stores.keys('create', '--replace', ...of('production', 'publishable')));
  const random = secret.slice(secret.indexOf('-') + 1);
  const answers: string[] = [];
  const postAll = async () => {
    const sent = requestsWith(secret, key).flatMap(({ path, init }) =>
      [gateway.url, gateway.adminUrl].map(async (url) => textOf(await fetch(url + path, init))),
    );
    const texts = [`${secret} / HTTP/1.1\r\n\r\n`, `GET / HTTP/1.1\r\n${secret}\r\n\r\n`, secret];
    answers.push(...(await Promise.all([...sent, ...texts.map((text) => sendRaw(gateway.url, text))])));
  };

  await postAll();
  // The only value that the contract echoes word for word: the message id in a rejection.
  const echo = await gateway.post(key, { messages: [message({ messageId: secret })] });
  const { rejections, ...rest } = (await echo.json()) as { rejections: { messageId: string }[] };
  expect(rejections.map(({ messageId }) => messageId)).toEqual([secret]);
  answers.push(JSON.stringify([rest, rejections.map(({ messageId: _, ...others }) => others)]));
  // Faults have the longest log lines.
  wire.mode = 'cut';
  await postAll();
  wire.mode = 'open';
  answers.push(await (await fetch(`${gateway.adminUrl}/metrics`)).text());
  await gateway.close();

  expect(gateway.output()).toContain('"level":"error"');
  expect(gateway.output()).not.toContain(random);
  expect(answers.filter((text) => text.includes(random))).toEqual([]);
  expect(answers.length).toBeGreaterThan(100);
});

const limit = (...texts: string[]) =>
  stores.projects('limit', '--project', 'demo', '--environment', 'production', ...texts, '--json');
const policyOf = async ({ post }: GatewayProcess, key: string) =>
  (await post(key, { messages: [message()] })).headers.get('ratelimit-policy');

it('the rate of an environment in its project is followed by two running gateways within a second of each change, and is the setting without one', async () => {
  const key = keyIn(await stores.keys('create', '--replace', ...of('production', 'publishable')));
  const changes = [
    [['--cap', '600/1200'], '"messages";q=1200;w=2'],
    [['--limit', '6/12'], '"messages";q=12;w=2'],
    [['--cap', 'none', '--limit', 'none'], '"messages";q=10000;w=2'],
  ] as const;
  for (const [texts, policy] of changes) {
    await limit(...texts);
    const changedAt = performance.now();
    for (const gateway of gateways) await until('it goes by it', async () => (await policyOf(gateway, key)) === policy);
    expect(performance.now() - changedAt).toBeLessThan(1000);
  }
});

it('the rate of an environment in its project is enforced, and stays as last known while Redis is away', async () => {
  await limit('--cap', '1/3');
  const key = keyIn(await stores.keys('create', '--replace', ...of('production', 'publishable')));
  const { gateway, wire } = await openOnWire();
  await until('it goes by it', async () => (await policyOf(gateway, key)) === '"messages";q=3;w=3');
  const { status } = await gateway.post(key, { messages: Array.from({ length: 9 }, () => message()) });
  expect(status).toBeLessThan(500);
  expect((await gateway.post(key, { messages: [message()] })).status).toBe(429);
  wire.mode = 'cut';
  expect(await policyOf(gateway, key)).toBe('"messages";q=3;w=3');
});

async function create(partner: string): Promise<RateLimitKeyRecord> {
  const texts = ['create', '--kind', 'rate-limit', '--partner', partner, '--calls', '5', '--json'];
  return JSON.parse(await stores.keys(...texts));
}

/** Partners of the live keys; null while the view cannot answer. */
async function partners(): Promise<string[] | null> {
  try {
    const { records } = await view.readSince(null);
    return records?.filter(({ revokedAt }) => revokedAt === null).map(({ partner }) => partner) ?? [];
  } catch {
    return null;
  }
}

/** Revokes a key as a command does that dies after writing the log and before writing Redis. */
async function revokeHalf(keyId: string): Promise<void> {
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
  const dying = { ...view, update: () => Promise.reject(new Error('killed')) };
  const store = createRecordStore({ view: dying, log }, { changedBy: 'ada', requestId: 'r' });
  const revoked = store.change((records) => ({ ...records.find((each) => each.keyId === keyId)!, revokedAt: 1 }));
  await expect(revoked).rejects.toThrow(ViewFault);
  await producer.close();
  await reader.close();
}

it('a running gateway brings records of access back into a Redis that was emptied', async () => {
  await create('Acme');
  const redis = new Redis(stores.redisUrl);
  onTestFinished(() => redis.disconnect());
  await redis.flushdb();
  await until('the keys are back', async () => (await partners())?.includes('Acme') === true);
});

it('a running gateway applies a change whose command died between log and Redis', async () => {
  const { keyId } = await create('Beta');
  await revokeHalf(keyId);
  await until('the key has ended', async () => (await partners())?.includes('Beta') === false);
});
