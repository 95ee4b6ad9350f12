import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { type KeyRecord, revokeKey } from '@playline/access-keys';
import type { Exchange } from '@playline/http';
import { createLocalLimiter } from '@playline/rate-limit';
import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { createFailedKeyLimit } from './authorise.ts';
import { CONSENT, wanted } from './test/audience-calls.ts';
import { KEY_HEADER, MESSAGES, message, openGateway, type TestGateway } from './test/open-gateway.ts';

const OWNER = { projectId: 'p', environmentId: 'demo-test', environment: 'production', kind: 'publishable' } as const;

/** Sends all of a request but its last byte. */
function begin({ url, key }: TestGateway, method: string, path: string, body: unknown) {
  const bytes = Buffer.from(JSON.stringify(body));
  const headers = { 'content-type': 'application/json', 'content-length': bytes.length, [KEY_HEADER]: key };
  const sending = request(url + path, { method, headers });
  const answer = new Promise<{ status: number; body: string }>((resolve, reject) => {
    sending.on('error', reject);
    sending.on('response', async (response) => resolve({ status: response.statusCode!, body: await text(response) }));
  });
  sending.write(bytes.subarray(0, -1));
  return { finish: () => sending.end(bytes.subarray(-1)), answer };
}

const CALLS = [
  ['POST', MESSAGES, { messages: [message()] }, 401, 'UNAUTHORISED_REQUEST'],
  ['PUT', CONSENT, wanted(), 400, 'VALIDATION_ERROR'],
] as const;

it.each(CALLS)(
  'a request whose body is still arriving as %s %s stores nothing when its key is revoked before the last byte',
  // biome-ignore lint/complexity/useMaxParams: the columns of the table
  async (method, path, body, status, code) => {
    const gateway = await openGateway();
    const { finish, answer } = begin(gateway, method, path, body);
    await until('the body is arriving', async () => /in_flight_bytes\S+ [1-9]/.test(await gateway.metrics()));
    await revokeKey({ store: gateway.store }, OWNER);
    await until('the key has ended', async () => (await gateway.post({ messages: [message()] })).status === 401);
    gateway.producer.sent.length = 0;
    finish();
    const { status: answered, body: envelope } = await answer;
    expect({ answered, code: JSON.parse(envelope).code }).toEqual({ answered: status, code });
    expect(gateway.producer.sent).toEqual([]);
    expect(await gateway.metrics()).toContain('playline_gateway_in_flight_bytes{service="gateway"} 0');
  },
);

it.each(CALLS)(
  'a request whose body is still arriving as %s %s is served when its key is valid all the time',
  async (method, path, body) => {
    const gateway = await openGateway();
    const { finish, answer } = begin(gateway, method, path, body);
    await until('the body is arriving', async () => /in_flight_bytes\S+ [1-9]/.test(await gateway.metrics()));
    finish();
    expect((await answer).status).toBeLessThan(300);
    expect(gateway.producer.sent).toHaveLength(1);
  },
);

it('the count of key use counts a request once, with its accepted and rejected messages', async () => {
  const { post, usage } = await openGateway();
  await post({ messages: [message(), message({ eventName: '' })] });
  const { keys, environments } = usage.take();
  expect(keys).toMatchObject([{ uses: 1, refusals: 0, lastRefusal: null }]);
  expect(environments).toEqual([{ environmentId: 'demo-test', accepted: 1, rejected: 1 }]);
});

it('the count of key use records the trace of a refusal and the reason given in the answer', async () => {
  const { post, usage, producer } = await openGateway({ RATE_LIMIT_MESSAGES_PER_S: 1, RATE_LIMIT_BURST: 3 });
  const lastOf = () => usage.take().keys[0]!;
  const refusalOf = (answer: Response, reason: string) => ({
    uses: 1,
    refusals: 1,
    lastRefusal: { at: expect.any(Number), reason, traceId: answer.headers.get('x-trace-id') },
  });
  const rejected = await post({ messages: [message({ eventName: '' })] });
  expect(lastOf()).toMatchObject(refusalOf(rejected, 'ALL_MESSAGES_REJECTED'));
  const nonsense = await post('nonsense');
  expect(lastOf()).toMatchObject(refusalOf(nonsense, 'VALIDATION_ERROR'));
  producer.mode = 'fail';
  const failed = await post({ messages: [message()] });
  expect(lastOf()).toMatchObject(refusalOf(failed, 'INTERNAL_SERVER_ERROR'));
  const limited = await post({ messages: [message()] });
  expect(limited.status).toBe(429);
  expect(lastOf()).toMatchObject(refusalOf(limited, 'TOO_MANY_REQUESTS_ERROR'));
});

it('the count of key use counts nothing for unknown keys or without a key', async () => {
  const { post, usage, key } = await openGateway();
  const flipped = key.slice(0, -1) + (key.endsWith('a') ? 'b' : 'a');
  await post({ messages: [message()] }, { [KEY_HEADER]: flipped });
  await post({ messages: [message()] }, { [KEY_HEADER]: '' });
  expect(usage.take()).toMatchObject({ keys: [], environments: [], lost: 0 });
});

it('the count of key use counts reads of consents and erasures, each under its own key', async () => {
  const { url, usage, key, secretKey } = await openGateway();
  const headers = { [KEY_HEADER]: key };
  expect((await fetch(`${url}${CONSENT}?anonymousId=a`, { headers })).status).toBe(200);
  expect((await fetch(url + CONSENT, { headers })).status).toBe(400);
  const erased = await fetch(`${url}/v1/audience/data?anonymousId=a`, {
    method: 'DELETE',
    headers: { 'x-service-api-key': secretKey },
  });
  expect(erased.status).toBe(202);
  const { keys, environments } = usage.take();
  expect(keys).toMatchObject([
    { uses: 2, refusals: 1, lastRefusal: { reason: 'VALIDATION_ERROR' } },
    { uses: 1, refusals: 0 },
  ]);
  expect(environments).toEqual([]);
});

const exchangeOf = (address: string) => ({ request: { address } }) as unknown as Exchange;

/** Keys and the results of their queries; all other keys are unknown. */
function setUp() {
  const keys = new Map<string, KeyRecord>([['good', { keyId: 'k' } as KeyRecord]]);
  const world = { keys, queries: 0, away: false };
  const limit = createFailedKeyLimit({
    limiter: createLocalLimiter({ policy: { name: 'failed-keys', perSecond: 1, burst: 3 }, now: () => 0 }),
    addressOf: (request) => (request as unknown as { address: string }).address,
    onRefused: () => {},
  });
  const verify = limit.guard(async (key) => {
    world.queries++;
    if (world.away) throw new Error('away');
    return keys.get(key) ?? null;
  });
  const query = async (key: string, address = '192.0.2.1') => verify(key, exchangeOf(address));
  return { world, query };
}

it('the limit on failed keys is the same for parallel tries as for tries one by one', async () => {
  const { query } = setUp();
  const outcomes = await Promise.allSettled(Array.from({ length: 100 }, (_, position) => query(`wrong-${position}`)));
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(3);
});

it('the limit on failed keys charges nothing for a valid key, however often it is used', async () => {
  const { query } = setUp();
  for (let times = 0; times < 10; times++) expect(await query('good')).not.toBeNull();
  for (let times = 0; times < 3; times++) expect(await query('wrong')).toBeNull();
  await expect(query('wrong')).rejects.toThrow('Too many requests');
});

it('the limit on failed keys lets a valid key through from a refused address, known or new, and requires it to wait once it has ended', async () => {
  const { world, query } = setUp();
  await query('good');
  for (let times = 0; times < 3; times++) await query('wrong');
  world.keys.set('successor', { keyId: 's' } as KeyRecord);
  expect(await query('successor')).not.toBeNull();
  expect(await query('good')).not.toBeNull();
  world.keys.delete('good');
  await expect(query('good')).rejects.toMatchObject({ code: 'TOO_MANY_REQUESTS_ERROR', retryAfterS: 1 });
});

it('the limit on failed keys charges no address while the store is away', async () => {
  const { world, query } = setUp();
  world.away = true;
  for (let times = 0; times < 10; times++) await expect(query('any')).rejects.toThrow('away');
});

it('the limit on failed keys counts each address separately', async () => {
  const { query } = setUp();
  for (let times = 0; times < 3; times++) await query('wrong');
  expect(await query('wrong', '192.0.2.2')).toBeNull();
});
