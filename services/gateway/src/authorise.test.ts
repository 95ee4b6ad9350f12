import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { type KeyRecord, revokeKey } from '@playline/access-keys';
import type { Exchange } from '@playline/http';
import { createLocalLimiter } from '@playline/rate-limit';
import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { createFailedKeyLimit } from './authorise.ts';
import { CONSENT, consentChange } from './test/audience-calls.ts';
import { KEY_HEADER, MESSAGES, message, openGateway, type TestGateway } from './test/open-gateway.ts';

const OWNER = { projectId: 'p', environmentId: 'demo-test', environment: 'production', kind: 'publishable' } as const;

/** Sends a request except for its last byte. */
function startRequest({ url, key }: TestGateway, method: string, path: string, body: unknown) {
  const bytes = Buffer.from(JSON.stringify(body));
  const headers = { 'content-type': 'application/json', 'content-length': bytes.length, [KEY_HEADER]: key };
  const clientRequest = request(url + path, { method, headers });
  const response = new Promise<{ status: number; body: string }>((resolve, reject) => {
    clientRequest.on('error', reject);
    clientRequest.on('response', async (response) =>
      resolve({ status: response.statusCode!, body: await text(response) }),
    );
  });
  clientRequest.write(bytes.subarray(0, -1));
  return { finish: () => clientRequest.end(bytes.subarray(-1)), response };
}

const CALLS = [
  ['POST', MESSAGES, { messages: [message()] }, 401, 'UNAUTHORISED_REQUEST'],
  ['PUT', CONSENT, consentChange(), 400, 'VALIDATION_ERROR'],
] as const;

it.each(CALLS)(
  'a %s %s whose key is revoked before the last byte of the body arrives stores nothing',
  // biome-ignore lint/complexity/useMaxParams: the columns of the table
  async (method, path, body, status, code) => {
    const gateway = await openGateway();
    const { finish, response } = startRequest(gateway, method, path, body);
    await until('the body is arriving', async () => /in_flight_bytes\S+ [1-9]/.test(await gateway.metrics()));
    await revokeKey({ store: gateway.store }, OWNER);
    await until('the key is refused', async () => (await gateway.post({ messages: [message()] })).status === 401);
    gateway.producer.sent.length = 0;
    finish();
    const { status: actual, body: envelope } = await response;
    expect({ actual, code: JSON.parse(envelope).code }).toEqual({ actual: status, code });
    expect(gateway.producer.sent).toEqual([]);
    expect(await gateway.metrics()).toContain('playline_gateway_in_flight_bytes{service="gateway"} 0');
  },
);

it.each(CALLS)(
  'a %s %s succeeds if its key stays valid until the whole body has arrived',
  async (method, path, body) => {
    const gateway = await openGateway();
    const { finish, response } = startRequest(gateway, method, path, body);
    await until('the body is arriving', async () => /in_flight_bytes\S+ [1-9]/.test(await gateway.metrics()));
    finish();
    expect((await response).status).toBeLessThan(300);
    expect(gateway.producer.sent).toHaveLength(1);
  },
);

it('key usage counts a request once, with its accepted and rejected messages', async () => {
  const { post, usage } = await openGateway();
  await post({ messages: [message(), message({ eventName: '' })] });
  const { keys, environments } = usage.take();
  expect(keys).toMatchObject([{ uses: 1, refusals: 0, lastRefusal: null }]);
  expect(environments).toEqual([{ environmentId: 'demo-test', accepted: 1, rejected: 1 }]);
});

it('key usage records the trace id and the reason of the last refusal', async () => {
  const { post, usage, producer } = await openGateway({ RATE_LIMIT_MESSAGES_PER_S: 1, RATE_LIMIT_BURST: 3 });
  const takeFirst = () => usage.take().keys[0]!;
  const expectedRefusal = (response: Response, reason: string) => ({
    uses: 1,
    refusals: 1,
    lastRefusal: { at: expect.any(Number), reason, traceId: response.headers.get('x-trace-id') },
  });
  const rejected = await post({ messages: [message({ eventName: '' })] });
  expect(takeFirst()).toMatchObject(expectedRefusal(rejected, 'ALL_MESSAGES_REJECTED'));
  const nonsense = await post('nonsense');
  expect(takeFirst()).toMatchObject(expectedRefusal(nonsense, 'VALIDATION_ERROR'));
  producer.mode = 'fail';
  const failed = await post({ messages: [message()] });
  expect(takeFirst()).toMatchObject(expectedRefusal(failed, 'INTERNAL_SERVER_ERROR'));
  const limited = await post({ messages: [message()] });
  expect(limited.status).toBe(429);
  expect(takeFirst()).toMatchObject(expectedRefusal(limited, 'TOO_MANY_REQUESTS_ERROR'));
});

it('key usage does not count requests with an unknown key or without a key', async () => {
  const { post, usage, key } = await openGateway();
  const flipped = key.slice(0, -1) + (key.endsWith('a') ? 'b' : 'a');
  await post({ messages: [message()] }, { [KEY_HEADER]: flipped });
  await post({ messages: [message()] }, { [KEY_HEADER]: '' });
  expect(usage.take()).toMatchObject({ keys: [], environments: [], lost: 0 });
});

it('key usage counts every refused request with an ended key under this key, also while the address is limited', async () => {
  const { post, usage, store } = await openGateway({ RATE_LIMIT_FAILED_KEYS_PER_MINUTE: 1 });
  await post({ messages: [message()] });
  const [{ keyId } = {}] = usage.take().keys;
  await revokeKey({ store }, OWNER);
  await until('the key is refused', async () => (await post({ messages: [message()] })).status === 401);
  usage.take();
  const statuses = [await post({ messages: [message()] }), await post('nonsense')].map(({ status }) => status);
  expect(statuses).toEqual([429, 429]);
  const lastRefusal = { reason: 'KEY_ENDED', traceId: expect.any(String) };
  expect(usage.take()).toMatchObject({
    keys: [{ keyId, uses: 2, refusals: 2, messages: 0, lastRefusal }],
    environments: [],
  });
});

it('key usage counts consent reads under the publishable key, and erasures under the secret key', async () => {
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

const createExchange = (address: string) => ({ request: { address } }) as unknown as Exchange;

/** Creates a failed-key limit with one valid key, `good`. All other keys are unknown. */
function setUp() {
  const keys = new Map<string, KeyRecord>([['good', { keyId: 'k' } as KeyRecord]]);
  const state = { keys, queries: 0, isUnavailable: false };
  const limit = createFailedKeyLimit({
    limiter: createLocalLimiter({ policy: { name: 'failed-keys', perSecond: 1, burst: 3 }, now: () => 0 }),
    addressOf: (request) => (request as unknown as { address: string }).address,
    onRefused: () => {},
    onInvalid: () => {},
  });
  const verify = limit.guard(async (key) => {
    state.queries++;
    if (state.isUnavailable) throw new Error('unavailable');
    return keys.get(key) ?? null;
  });
  const query = async (key: string, address = '192.0.2.1') => verify(key, createExchange(address));
  return { state, query };
}

it('the failed-key limit counts concurrent attempts individually', async () => {
  const { query } = setUp();
  const outcomes = await Promise.allSettled(Array.from({ length: 100 }, (_, position) => query(`wrong-${position}`)));
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(3);
});

it('the failed-key limit does not charge valid keys', async () => {
  const { query } = setUp();
  for (let attempt = 0; attempt < 10; attempt++) expect(await query('good')).not.toBeNull();
  for (let attempt = 0; attempt < 3; attempt++) expect(await query('wrong')).toBeNull();
  await expect(query('wrong')).rejects.toThrow('Too many requests');
});

it('the failed-key limit accepts cached and new valid keys from a limited address, and limits a key once it is revoked', async () => {
  const { state, query } = setUp();
  await query('good');
  for (let attempt = 0; attempt < 3; attempt++) await query('wrong');
  state.keys.set('successor', { keyId: 's' } as KeyRecord);
  expect(await query('successor')).not.toBeNull();
  expect(await query('good')).not.toBeNull();
  state.keys.delete('good');
  await expect(query('good')).rejects.toMatchObject({ code: 'TOO_MANY_REQUESTS_ERROR', retryAfterS: 1 });
});

it('the failed-key limit does not charge requests while the key store is unavailable', async () => {
  const { state, query } = setUp();
  state.isUnavailable = true;
  for (let attempt = 0; attempt < 10; attempt++) await expect(query('any')).rejects.toThrow('unavailable');
});

it('the failed-key limit counts each client address separately', async () => {
  const { query } = setUp();
  for (let attempt = 0; attempt < 3; attempt++) await query('wrong');
  expect(await query('wrong', '192.0.2.2')).toBeNull();
});
