import { connect, type Socket } from 'node:net';
import { brotliCompressSync, deflateRawSync, gzipSync } from 'node:zlib';
import { createKey, refreshKey } from '@playline/access-keys';
import { until } from '@playline/testkit';
import { expect, it, onTestFinished } from 'vitest';
import {
  expectEnvelope,
  KEY_HEADER,
  MESSAGES,
  message,
  openGateway,
  type TestGateway,
} from '../../test/open-gateway.ts';

const KIB = 1024;
const MIB = KIB * KIB;
/** Creates a batch of about 20 KiB. */
const large = () => ({ messages: [message({ properties: { text: 'x'.repeat(20 * KIB) } })] });

/** A chunk of 10 KiB. */
const CHUNK = `2800\r\n${' '.repeat(10 * KIB)}\r\n`;

const createHead = (key: string) => [
  `POST ${MESSAGES} HTTP/1.1`,
  'host: gateway',
  'content-type: application/json',
  `${KEY_HEADER}: ${key}`,
];

/** Sends the lines of a request, complete or not, and returns the first response. */
async function readFirstResponse(port: number, lines: string[]): Promise<string> {
  const socket = connect(port, '127.0.0.1', () => socket.write(lines.join('\r\n')));
  const response = await new Promise<string>((resolve) => socket.once('data', (chunk) => resolve(chunk.toString())));
  socket.destroy();
  return response;
}

const POLICY = '"messages";q=10;w=2';
/** A batch of 10 empties the bucket. The refill of 5 messages a second is too slow to matter during a test. */
const small = { RATE_LIMIT_MESSAGES_PER_S: 5, RATE_LIMIT_BURST: 10 };
const batch = (messages: number) => ({ messages: Array.from({ length: messages }, () => message()) });
const parseLimit = (response: Response) => /^"messages";r=(\d+);t=(\d+)$/.exec(response.headers.get('ratelimit') ?? '');
const parseRemaining = (response: Response) => Number(parseLimit(response)?.[1]);

it('a batch returns 429 with whole seconds in Retry-After while the bucket is empty, and 200 after the refill', async () => {
  const { post, producer } = await openGateway({ RATE_LIMIT_MESSAGES_PER_S: 40, RATE_LIMIT_BURST: 40 });
  expect((await post(batch(100))).status).toBe(200);
  const response = await post(batch(1));
  expect(response.status).toBe(429);
  expect(response.headers.get('retry-after')).toBe('2');
  expect(response.headers.get('ratelimit-policy')).toBe('"messages";q=40;w=1');
  expect(response.headers.get('ratelimit')).toBe('"messages";r=0;t=2');
  await expectEnvelope(response, 'TOO_MANY_REQUESTS_ERROR');
  expect(producer.sent).toHaveLength(1);
  await until('the bucket is no longer empty', async () => (await post(batch(1))).status === 200, 2500);
});

it('the rate limit returns 429 before the client sends the body', async () => {
  const { post, port, key } = await openGateway(small);
  await post(batch(100));
  const response = await readFirstResponse(port, [...createHead(key), `content-length: ${20 * KIB}`, '', '']);
  expect(response).toMatch(/^HTTP\/1\.1 429 /);
});

it('a client that sends its whole body before it reads the response receives the 429', async () => {
  const { post } = await openGateway(small);
  await post(batch(100));
  for (let times = 0; times < 3; times++) expect((await post(Buffer.alloc(4 * KIB * KIB, ' '))).status).toBe(429);
});

it('the rate limit counts rejected messages, and counts a body without messages as one unit', async () => {
  const { post } = await openGateway({ RATE_LIMIT_MESSAGES_PER_S: 1, RATE_LIMIT_BURST: 1000 });
  const responses = [
    await post({ messages: [message(), {}, 7] }),
    await post({ messages: [{}, {}] }),
    await post('not JSON'),
    await post({ messages: [] }),
  ];
  expect(responses.map(({ status }) => status)).toEqual([200, 400, 400, 400]);
  expect(responses.map(parseRemaining)).toEqual([997, 995, 994, 993]);
});

it('the rate limit charges a body for its decompressed KiB if they exceed the number of messages, even if the body is invalid', async () => {
  const { post } = await openGateway({ RATE_LIMIT_MESSAGES_PER_S: 1, RATE_LIMIT_BURST: 10_000 });
  const nonsense = `{"messages":[${'{},'.repeat(MIB / 3 - 10)}{}]}`;
  const gzipped = { 'content-encoding': 'gzip' };
  const truncated = gzipSync('['.repeat(MIB)).subarray(0, -12);
  const bodies: [Buffer | string, Record<string, string>][] = [
    [gzipSync(nonsense), gzipped],
    [gzipSync('['.repeat(MIB)), gzipped],
    [gzipSync('['.repeat(MIB + 1)), gzipped],
    [truncated, gzipped],
    ['not gzip', gzipped],
    [brotliCompressSync(nonsense).subarray(0, -1), { 'content-encoding': 'br' }],
    ['['.repeat(100 * KIB), {}],
  ];
  const remaining: number[] = [];
  const startAt = performance.now();
  for (const [body, headers] of bodies) {
    const response = await post(body, headers);
    expect(response.status).toBe(400);
    remaining.push(parseRemaining(response));
  }
  expect(gzipSync(nonsense).length).toBeLessThan(2 * KIB);
  const refilledMax = Math.ceil((performance.now() - startAt) / 1000);
  for (const [index, units] of [1024, 1024, 1024, 1024, 1, 1024, 100].entries()) {
    const refilled = units - (remaining[index - 1] ?? 10_000) + remaining[index]!;
    expect(refilled >= 0 && refilled <= refilledMax).toBe(true);
  }
});

it('the rate limit charges a body for its KiB as sent if decompression makes the body smaller', async () => {
  const { post } = await openGateway({ RATE_LIMIT_MESSAGES_PER_S: 1, RATE_LIMIT_BURST: 10_000 });
  const text = JSON.stringify(batch(1));
  const remaining: number[] = [];
  for (const [coding, empty, complete] of [
    ['gzip', gzipSync(''), gzipSync(text)],
    // An empty stored block: RFC 1951, section 3.2.4.
    ['deflate', Buffer.of(0, 0, 0, 0xff, 0xff), deflateRawSync(text)],
  ] as const) {
    const blocks = Buffer.alloc(100 * KIB - ((100 * KIB) % empty.length), empty);
    remaining.push(parseRemaining(await post(Buffer.concat([blocks, complete]), { 'content-encoding': coding })));
  }
  // The bucket may gain a unit during the test.
  expect([remaining[0]! < 10_000 - 95, remaining[1]! < 10_000 - 190]).toEqual([true, true]);
});

it.each(['gzip', 'deflate', 'br', 'zstd'])(
  'the rate limit counts an empty body with content-encoding %s as one unit',
  async (coding) => {
    const { post } = await openGateway({ RATE_LIMIT_MESSAGES_PER_S: 1, RATE_LIMIT_BURST: 10_000 });
    const refused = await post('', { 'content-encoding': coding });
    expect(refused.status).toBe(400);
    expect(refused.headers.get('ratelimit')).toBe('"messages";r=9999;t=1');
    expect((await post(batch(1))).status).toBe(200);
  },
);

it('the rate limit counts a message of 940 bytes as one unit, and admits a batch of the maximum size', async () => {
  const { post } = await openGateway({ RATE_LIMIT_MESSAGES_PER_S: 1, RATE_LIMIT_BURST: 1000 });
  const createMessageOfSize = (bytes: number) => {
    const small = message({ properties: { text: '' } });
    return { ...small, properties: { text: 'x'.repeat(bytes - JSON.stringify(small).length) } };
  };
  const full = (count: number, bytes: number) => ({
    messages: Array.from({ length: count }, () => createMessageOfSize(bytes)),
  });
  const startAt = performance.now();
  const responses = [await post(full(1, 940)), await post(full(100, 940)), await post(full(100, 10_480))];
  expect(responses.map(({ status }) => status)).toEqual([200, 200, 200]);
  // The last batch is 1 MiB long and leaves a debt, because any batch is admitted while the bucket is not empty.
  const refilled = parseRemaining(responses[1]!) - 899;
  expect([parseRemaining(responses[0]!), parseRemaining(responses[2]!)]).toEqual([999, 0]);
  expect(refilled >= 0 && refilled <= Math.ceil((performance.now() - startAt) / 1000)).toBe(true);
  expect((await post(batch(1))).status).toBe(429);
});

it('the rate limit uses the rate that the settings specify for an environment', async () => {
  const rates = new Map([['demo-test', { perSecond: 5, burst: 10 }]]);
  const { post } = await openGateway({ RATE_LIMITS_BY_ENVIRONMENT: rates });
  const response = await post(batch(4));
  expect(response.headers.get('ratelimit-policy')).toBe(POLICY);
  expect(parseRemaining(response)).toBe(6);
});

it('the rate limit uses the project’s rate, and a changed rate starts with a full bucket', async () => {
  let rate = { perSecond: 1, burst: 10 };
  const { post } = await openGateway({ ...small, ratesOf: () => rate });
  const response = await post(batch(10));
  expect(response.headers.get('ratelimit-policy')).toBe('"messages";q=10;w=10');
  expect((await post(batch(1))).status).toBe(429);
  rate = { perSecond: 1, burst: 20 };
  expect(parseRemaining(await post(batch(1)))).toBe(19);
});

it('a metric counts refused requests by limit', async () => {
  const { post, metrics } = await openGateway(small);
  await post(batch(100));
  await post(batch(1));
  expect(await metrics()).toContain('playline_gateway_rate_limited_total{limit="messages",service="gateway"} 1');
});

it('every response to a request with a valid key has RateLimit and RateLimit-Policy headers: 200, 400, 429 and 500', async () => {
  const limits = { RATE_LIMIT_MESSAGES_PER_S: 5, RATE_LIMIT_BURST: 60, BYTES_IN_FLIGHT_MAX: 25 * KIB };
  const { post, producer } = await openGateway(limits);
  const responses = [
    await post(batch(1)),
    await post('not JSON'),
    await post(batch(1), { 'content-type': 'text/plain' }),
  ];
  producer.mode = 'fail';
  responses.push(await post(batch(1)));
  producer.mode = 'hold';
  const inFlight = post(large());
  await until('a batch is in flight', () => producer.sent.length === 3);
  responses.push(await post(large()));
  producer.sent[2]?.done(null);
  responses.push(await inFlight);
  producer.mode = 'acknowledge';
  responses.push(await post(batch(50)), await post(batch(1)));
  expect(responses.map(({ status }) => status)).toEqual([200, 400, 400, 500, 429, 200, 200, 429]);
  for (const response of responses) {
    expect(response.headers.get('ratelimit-policy')).toBe('"messages";q=60;w=12');
    expect(parseLimit(response)).not.toBeNull();
  }
});

it('responses to a missing or invalid key have the RateLimit headers of the failed-key limit', async () => {
  const { url, post } = await openGateway();
  const headers = { 'content-type': 'application/json' };
  const missing = await fetch(url + MESSAGES, { method: 'POST', headers, body: '{}' });
  const invalid = await post(batch(1), { [KEY_HEADER]: 'nonsense' });
  expect([missing.status, invalid.status]).toEqual([400, 401]);
  expect(missing.headers.get('ratelimit')).toBe('"failed-keys";r=60;t=0');
  expect(invalid.headers.get('ratelimit')).toBe('"failed-keys";r=59;t=1');
  expect(invalid.headers.get('ratelimit-policy')).toBe('"failed-keys";q=60;w=60');
});

const RATE_LIMIT_FAILED_KEYS_PER_MINUTE = 3;
const postWithWrongKey = (gateway: TestGateway, headers: Record<string, string> = {}) =>
  gateway.post(batch(1), { [KEY_HEADER]: 'nonsense', ...headers });

it('an address with too many invalid keys receives 429 for further invalid keys, but its valid keys still work', async () => {
  const gateway = await openGateway({ RATE_LIMIT_FAILED_KEYS_PER_MINUTE });
  for (let times = 0; times < 3; times++) expect((await postWithWrongKey(gateway)).status).toBe(401);
  const response = await postWithWrongKey(gateway);
  expect(response.status).toBe(429);
  expect(Number(response.headers.get('retry-after'))).toBeLessThanOrEqual(20);
  expect(response.headers.get('ratelimit')).toMatch(/^"failed-keys";r=0;t=\d+$/);
  await expectEnvelope(response, 'TOO_MANY_REQUESTS_ERROR');
  expect((await gateway.post(batch(1))).status).toBe(200);
  expect(await gateway.metrics()).toContain(
    'playline_gateway_rate_limited_total{limit="failed-keys",service="gateway"} 1',
  );
});

it('the failed-key limit uses X-Forwarded-For only if proxies are trusted', async () => {
  const proxied = await openGateway({ RATE_LIMIT_FAILED_KEYS_PER_MINUTE, TRUSTED_PROXIES: 1 });
  const from = (gateway: TestGateway, address: string) => postWithWrongKey(gateway, { 'x-forwarded-for': address });
  for (let times = 0; times < 3; times++) await from(proxied, '192.0.2.1');
  expect((await from(proxied, '192.0.2.2, 192.0.2.1')).status).toBe(429);
  expect((await from(proxied, '192.0.2.1, 192.0.2.2')).status).toBe(401);
  const direct = await openGateway({ RATE_LIMIT_FAILED_KEYS_PER_MINUTE });
  for (let times = 0; times < 3; times++) await from(direct, '192.0.2.1');
  expect((await from(direct, '192.0.2.2')).status).toBe(429);
});

it('a batch returns 429 with whole seconds in Retry-After while the bytes in flight are at their limit', async () => {
  const { post, producer } = await openGateway({ BYTES_IN_FLIGHT_MAX: 50 * KIB });
  producer.mode = 'hold';
  const inFlight = [post(large()), post(large())];
  await until('two batches are in flight', () => producer.sent.length === 2);
  const response = await post(large());
  expect(response.status).toBe(429);
  expect(response.headers.get('retry-after')).toMatch(/^[1-9][0-9]*$/);
  await expectEnvelope(response, 'TOO_MANY_REQUESTS_ERROR');
  for (const { done } of producer.sent) done(null);
  for (const response of await Promise.all(inFlight)) expect(response.status).toBe(200);
  producer.mode = 'acknowledge';
  expect((await post(large())).status).toBe(200);
});

it('a request with a chunked body returns 429 as soon as the body exceeds the limit for bytes in flight', async () => {
  const { post, producer, port, key } = await openGateway({ BYTES_IN_FLIGHT_MAX: 100 * KIB });
  producer.mode = 'hold';
  const inFlight = post(large());
  await until('a batch is in flight', () => producer.sent.length === 1);
  // The body has no end, so the response cannot depend on the complete body.
  const lines = [...createHead(key), 'transfer-encoding: chunked', '', CHUNK.repeat(20)];
  expect(await readFirstResponse(port, lines)).toMatch(/^HTTP\/1\.1 429 /);
  producer.sent[0]?.done(null);
  expect((await inFlight).status).toBe(200);
});

it('a single request is admitted even if it exceeds the limit for bytes in flight', async () => {
  const { post } = await openGateway({ BYTES_IN_FLIGHT_MAX: 1 });
  expect((await post(large())).status).toBe(200);
});

async function createKeyFor({ store }: TestGateway, projectId: string, environmentId: string): Promise<string> {
  const owner = { projectId, environmentId, environment: 'production', kind: 'publishable' } as const;
  return (await createKey({ store, prefix: 'svcapik' }, owner)).key;
}

const readBytesInFlight = async ({ metrics }: TestGateway) =>
  Number(/playline_gateway_in_flight_bytes\{[^}]*\} (\d+)/.exec(await metrics())?.[1]);

/** Sends the headers of a request and only the first bytes of its body. */
function sendIncomplete(port: number, key: string, bytes: number, length = MIB): Socket {
  const lines = [...createHead(key), `content-length: ${length}`, '', ' '.repeat(bytes)];
  const socket = connect(port, '127.0.0.1', () => socket.write(lines.join('\r\n')));
  onTestFinished(() => void socket.destroy());
  return socket;
}

it('a refreshed publishable key and its successor share one rate limit, and another key has its own', async () => {
  const { store, post } = await openGateway(small);
  const owner = { projectId: 'p', environmentId: 'rolled', environment: 'production', kind: 'publishable' } as const;
  const context = { store, prefix: 'svcapik' };
  const { key: first } = await createKey(context, owner);
  const { key: second } = await refreshKey(context, { ...owner, endsAt: Date.now() + 60_000 });
  const { key: other } = await createKey(context, owner);
  const statuses: number[] = [];
  for (const key of [first, second, first, other]) statuses.push((await post(batch(30), { [KEY_HEADER]: key })).status);
  expect(statuses).toEqual([200, 429, 429, 200]);
});

it('a cap of an environment applies to all of its publishable keys together', async () => {
  const rate = { perSecond: 5, burst: 10 };
  const { store, post } = await openGateway({ ratesOf: () => rate });
  const owner = { projectId: 'p', environmentId: 'capped', environment: 'production', kind: 'publishable' } as const;
  const statuses: number[] = [];
  for (let keys = 0; keys < 2; keys++) {
    const { key } = await createKey({ store, prefix: 'svcapik' }, owner);
    statuses.push((await post(batch(30), { [KEY_HEADER]: key })).status);
  }
  expect(statuses).toEqual([200, 429]);
});

it('a project with slow bodies does not block another project', async () => {
  const gateway = await openGateway({ BYTES_IN_FLIGHT_MAX: 4 * MIB });
  const key = await createKeyFor(gateway, 'other', 'other');
  for (let caller = 0; caller < 6; caller++) sendIncomplete(gateway.port, gateway.key, MIB - 100);
  await until('the memory is full', async () => (await readBytesInFlight(gateway)) > 3.9 * MIB);
  const responses: number[] = [];
  for (let times = 0; times < 10; times++) responses.push((await gateway.post(large(), { [KEY_HEADER]: key })).status);
  expect(responses).toEqual(Array(10).fill(200));
});

it('a project with slow bodies in five environments still gets only half of the memory', async () => {
  const gateway = await openGateway({ BYTES_IN_FLIGHT_MAX: 100 * KIB });
  const { port, post, producer } = gateway;
  const slow = await Promise.all([1, 2, 3, 4, 5].map((number) => createKeyFor(gateway, 'slow', `slow-${number}`)));
  for (const key of slow) sendIncomplete(port, key, 19 * KIB, 20 * KIB);
  await until('the memory is full', async () => (await readBytesInFlight(gateway)) === 95 * KIB);
  const key = await createKeyFor(gateway, 'other', 'other');
  producer.mode = 'hold';
  const responses = [1, 2].map(() => post(large(), { [KEY_HEADER]: key }));
  const refused = Promise.race(responses).then(({ status }) => status);
  await until('both batches are published', async () => producer.sent.length === 2 || Promise.race([refused, null]));
  for (const { done } of producer.sent) done(null);
  expect((await Promise.all(responses)).map(({ status }) => status)).toEqual([200, 200]);
});

it('the rate limit charges an aborted request for the bytes that arrived', async () => {
  const gateway = await openGateway({ RATE_LIMIT_MESSAGES_PER_S: 1, RATE_LIMIT_BURST: 1000 });
  const { port, key, post } = gateway;
  const socket = sendIncomplete(port, key, 100 * KIB);
  await until('the first bytes have arrived', async () => (await readBytesInFlight(gateway)) === 100 * KIB);
  socket.destroy();
  await until('the request is aborted', async () => (await readBytesInFlight(gateway)) === 0);
  const remaining = parseRemaining(await post(batch(1)));
  // The bucket refills by one unit per second.
  expect(remaining >= 899 && remaining < 950).toBe(true);
});

it('the rate limit charges a request that exceeds the memory limit for the bytes that arrived', async () => {
  const limits = { RATE_LIMIT_MESSAGES_PER_S: 1, RATE_LIMIT_BURST: 1000, BYTES_IN_FLIGHT_MAX: 300 * KIB };
  const { port, key, post, producer } = await openGateway(limits);
  producer.mode = 'hold';
  const inFlight = post(large());
  await until('a batch is in flight', () => producer.sent.length === 1);
  const lines = [...createHead(key), 'transfer-encoding: chunked', '', CHUNK.repeat(60)];
  const response = await readFirstResponse(port, lines);
  expect(response).toMatch(/^HTTP\/1\.1 429 /);
  const remaining = Number(/ratelimit: "messages";r=(\d+)/.exec(response)?.[1]);
  expect(remaining).toBeLessThan(850);
  producer.sent[0]?.done(null);
  await inFlight;
});

const REQUESTS = 150;

/** Creates a request with one message. */
function createRequest(key: string): string {
  const body = JSON.stringify({ messages: [message()] });
  return `${createHead(key).join('\r\n')}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

/** Sends all requests in one write on one connection. @returns the status of each response */
async function sendInOneWrite(port: number, requests: readonly string[]): Promise<string[]> {
  let text = '';
  const socket = connect(port, '127.0.0.1', () => socket.write(requests.join('')));
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
  });
  const statuses = () => [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status = '']) => status);
  await until('every request has a response', () => statuses().length === requests.length, 20_000);
  socket.destroy();
  return statuses();
}

it('the rate limit applies to each request in a packet, because requests are charged on admission', async () => {
  const { port, key, producer } = await openGateway({ RATE_LIMIT_MESSAGES_PER_S: 5, RATE_LIMIT_BURST: 10 });
  const statuses = await sendInOneWrite(
    port,
    Array.from({ length: REQUESTS }, () => createRequest(key)),
  );
  const stored = statuses.filter((status) => status === '200').length;
  expect(stored).toBeGreaterThanOrEqual(10);
  expect(stored).toBeLessThan(20);
  expect(statuses.filter((status) => status === '429')).toHaveLength(REQUESTS - stored);
  expect(producer.sent).toHaveLength(stored);
});
