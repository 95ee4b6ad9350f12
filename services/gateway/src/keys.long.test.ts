import { connect } from 'node:net';
import { openWire, sendUntilRefused, until } from '@playline/testkit';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { type KeyStores, openKeyStores } from './test/key-stores.ts';
import { KEY_HEADER, MESSAGES, message } from './test/open-gateway.ts';
import { type GatewayProcess, openProcess } from './test/open-process.ts';

let stores: KeyStores;
beforeAll(async () => {
  stores = await openKeyStores();
});
afterAll(() => stores.close());

async function open(environment: Record<string, string> = {}): Promise<GatewayProcess> {
  const gateway = await openProcess(stores.topicPrefix, { REDIS_URL: stores.mutedRedisUrl, ...environment });
  onTestFinished(async () => void (await gateway.close()));
  await until('the gateway is ready', async () => (await fetch(`${gateway.adminUrl}/readyz`)).ok);
  return gateway;
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
  const gateways = [await open(), await open()];
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
  const gateways = [await open(), await open()];
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
  const redis = new URL(stores.redisUrl);
  const wire = await openWire(Number(redis.port));
  onTestFinished(() => wire.close());
  redis.port = String(wire.port);
  const gateway = await open({ LOG_LEVEL: 'trace', REDIS_URL: redis.href });
  const secret = keyIn(await stores.keys('create', ...of('production', 'secret')));
  const key = keyIn(await stores.keys('create', '--replace', ...of('production', 'publishable')));
  const random = secret.slice(secret.indexOf('-') + 1);
  const answers: string[] = [];
  const postAll = async () => {
    for (const { path, init } of requestsWith(secret, key)) {
      answers.push(await textOf(await fetch(gateway.url + path, init)));
      answers.push(await textOf(await fetch(gateway.adminUrl + path, init)));
    }
    for (const text of [`${secret} / HTTP/1.1\r\n\r\n`, `GET / HTTP/1.1\r\n${secret}\r\n\r\n`, secret])
      answers.push(await sendRaw(gateway.url, text));
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
