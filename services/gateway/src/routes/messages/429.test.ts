import { connect, type Socket } from 'node:net';
import { brotliCompressSync, deflateRawSync, gzipSync } from 'node:zlib';
import { createKey } from '@playline/access-keys';
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
/** A batch of about 20 KiB. */
const large = () => ({ messages: [message({ properties: { text: 'x'.repeat(20 * KIB) } })] });

/** 10 KiB of a chunked body. */
const CHUNK = `2800\r\n${' '.repeat(10 * KIB)}\r\n`;

const headOf = (key: string) => [
  `POST ${MESSAGES} HTTP/1.1`,
  'host: gateway',
  'content-type: application/json',
  `${KEY_HEADER}: ${key}`,
];

/** Sends the lines and returns the first answer, whether or not the request is complete. */
async function firstAnswer(port: number, lines: string[]): Promise<string> {
  const socket = connect(port, '127.0.0.1', () => socket.write(lines.join('\r\n')));
  const answer = await new Promise<string>((resolve) => socket.once('data', (chunk) => resolve(chunk.toString())));
  socket.destroy();
  return answer;
}

const POLICY = '"messages";q=10;w=2';
/** A batch of 10 empties the bucket, which refills by 5 messages a second: too slow to matter while a test runs. */
const small = { RATE_LIMIT_MESSAGES_PER_S: 5, RATE_LIMIT_BURST: 10 };
const batch = (messages: number) => ({ messages: Array.from({ length: messages }, () => message()) });
const limitOf = (answer: Response) => /^"messages";r=(\d+);t=(\d+)$/.exec(answer.headers.get('ratelimit') ?? '');
const leftOf = (answer: Response) => Number(limitOf(answer)?.[1]);

it('a 429 under the limit of a key answers while the bucket is empty, with whole seconds to wait, and 200 comes again after them', async () => {
  const { post, producer } = await openGateway({ RATE_LIMIT_MESSAGES_PER_S: 40, RATE_LIMIT_BURST: 40 });
  expect((await post(batch(100))).status).toBe(200);
  const answer = await post(batch(1));
  expect(answer.status).toBe(429);
  expect(answer.headers.get('retry-after')).toBe('2');
  expect(answer.headers.get('ratelimit-policy')).toBe('"messages";q=40;w=1');
  expect(answer.headers.get('ratelimit')).toBe('"messages";r=0;t=2');
  await expectEnvelope(answer, 'TOO_MANY_REQUESTS_ERROR');
  expect(producer.sent).toHaveLength(1);
  await until('the bucket is no longer empty', async () => (await post(batch(1))).status === 200, 2500);
});

it('a 429 under the limit of a key comes before a byte of the body is sent', async () => {
  const { post, port, key } = await openGateway(small);
  await post(batch(100));
  const answer = await firstAnswer(port, [...headOf(key), `content-length: ${20 * KIB}`, '', '']);
  expect(answer).toMatch(/^HTTP\/1\.1 429 /);
});

it('a 429 under the limit of a key reaches a caller that sends its whole body first, and keeps the connection open', async () => {
  const { post } = await openGateway(small);
  await post(batch(100));
  for (let times = 0; times < 3; times++) expect((await post(Buffer.alloc(4 * KIB * KIB, ' '))).status).toBe(429);
});

it('a 429 under the limit of a key counts rejected messages too, and a body without any as one', async () => {
  const { post } = await openGateway({ RATE_LIMIT_MESSAGES_PER_S: 1, RATE_LIMIT_BURST: 1000 });
  const answers = [
    await post({ messages: [message(), {}, 7] }),
    await post({ messages: [{}, {}] }),
    await post('no json'),
    await post({ messages: [] }),
  ];
  expect(answers.map(({ status }) => status)).toEqual([200, 400, 400, 400]);
  expect(answers.map(leftOf)).toEqual([997, 995, 994, 993]);
});

it('a 429 under the limit of a key counts a body by its decompressed KiB if those exceed its messages, whatever the outcome', async () => {
  const { post } = await openGateway({ RATE_LIMIT_MESSAGES_PER_S: 1, RATE_LIMIT_BURST: 10_000 });
  const nonsense = `{"messages":[${'{},'.repeat(MIB / 3 - 10)}{}]}`;
  const gzipped = { 'content-encoding': 'gzip' };
  const cut = gzipSync('['.repeat(MIB)).subarray(0, -12);
  const bodies: [Buffer | string, Record<string, string>][] = [
    [gzipSync(nonsense), gzipped],
    [gzipSync('['.repeat(MIB)), gzipped],
    [gzipSync('['.repeat(MIB + 1)), gzipped],
    [cut, gzipped],
    ['no gzip at all', gzipped],
    [brotliCompressSync(nonsense).subarray(0, -1), { 'content-encoding': 'br' }],
    ['['.repeat(100 * KIB), {}],
  ];
  const left: number[] = [];
  const startAt = performance.now();
  for (const [body, headers] of bodies) {
    const answer = await post(body, headers);
    expect(answer.status).toBe(400);
    left.push(leftOf(answer));
  }
  expect(gzipSync(nonsense).length).toBeLessThan(2 * KIB);
  const givenBackMax = Math.ceil((performance.now() - startAt) / 1000);
  for (const [index, units] of [1024, 1024, 1024, 1024, 1, 1024, 100].entries()) {
    const givenBack = units - (left[index - 1] ?? 10_000) + left[index]!;
    expect(givenBack >= 0 && givenBack <= givenBackMax).toBe(true);
  }
});

it('a 429 under the limit of a key counts a body by its KiB as sent if decompression makes it smaller', async () => {
  const { post } = await openGateway({ RATE_LIMIT_MESSAGES_PER_S: 1, RATE_LIMIT_BURST: 10_000 });
  const text = JSON.stringify(batch(1));
  const left: number[] = [];
  for (const [coding, nothing, whole] of [
    ['gzip', gzipSync(''), gzipSync(text)],
    // A stored block without bytes: RFC 1951, 3.2.4.
    ['deflate', Buffer.of(0, 0, 0, 0xff, 0xff), deflateRawSync(text)],
  ] as const) {
    const blocks = Buffer.alloc(100 * KIB - ((100 * KIB) % nothing.length), nothing);
    left.push(leftOf(await post(Buffer.concat([blocks, whole]), { 'content-encoding': coding })));
  }
  // The bucket may gain a unit during the test.
  expect([left[0]! < 10_000 - 95, left[1]! < 10_000 - 190]).toEqual([true, true]);
});

it.each(['gzip', 'deflate', 'br', 'zstd'])(
  'a 429 under the limit of a key counts an empty body that is called %s as one',
  async (coding) => {
    const { post } = await openGateway({ RATE_LIMIT_MESSAGES_PER_S: 1, RATE_LIMIT_BURST: 10_000 });
    const refused = await post('', { 'content-encoding': coding });
    expect(refused.status).toBe(400);
    expect(refused.headers.get('ratelimit')).toBe('"messages";r=9999;t=1');
    expect((await post(batch(1))).status).toBe(200);
  },
);

it('a 429 under the limit of a key counts a usual message of 940 bytes as one, alone and in a batch, and takes a batch at all limits', async () => {
  const { post } = await openGateway({ RATE_LIMIT_MESSAGES_PER_S: 1, RATE_LIMIT_BURST: 1000 });
  const sized = (bytes: number) => {
    const small = message({ properties: { text: '' } });
    return { ...small, properties: { text: 'x'.repeat(bytes - JSON.stringify(small).length) } };
  };
  const full = (count: number, bytes: number) => ({ messages: Array.from({ length: count }, () => sized(bytes)) });
  const startAt = performance.now();
  const answers = [await post(full(1, 940)), await post(full(100, 940)), await post(full(100, 10_480))];
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  // The last has a mebibyte and leaves a debt: any batch is admitted while the bucket is not empty.
  const givenBack = leftOf(answers[1]!) - 899;
  expect([leftOf(answers[0]!), leftOf(answers[2]!)]).toEqual([999, 0]);
  expect(givenBack >= 0 && givenBack <= Math.ceil((performance.now() - startAt) / 1000)).toBe(true);
  expect((await post(batch(1))).status).toBe(429);
});

it('a 429 under the limit of a key follows the rate of an environment that has its own', async () => {
  const own = new Map([['demo-test', { perSecond: 5, burst: 10 }]]);
  const { post } = await openGateway({ RATE_LIMITS_BY_ENVIRONMENT: own });
  const answer = await post(batch(4));
  expect(answer.headers.get('ratelimit-policy')).toBe(POLICY);
  expect(leftOf(answer)).toBe(6);
});

it('a 429 under the limit of a key follows the rate that the project sets, with one bucket for each rate', async () => {
  let rate = { perSecond: 1, burst: 10 };
  const { post } = await openGateway({ ...small, ratesOf: () => rate });
  const answer = await post(batch(10));
  expect(answer.headers.get('ratelimit-policy')).toBe('"messages";q=10;w=10');
  expect((await post(batch(1))).status).toBe(429);
  rate = { perSecond: 1, burst: 20 };
  expect(leftOf(await post(batch(1)))).toBe(19);
});

it('a 429 under the limit of a key is counted in a metric under the name of its limit', async () => {
  const { post, metrics } = await openGateway(small);
  await post(batch(100));
  await post(batch(1));
  expect(await metrics()).toContain('playline_gateway_rate_limited_total{limit="messages",service="gateway"} 1');
});

it('RateLimit and RateLimit-Policy are in every answer under a valid key: 200, 400, both kinds of 429, 500', async () => {
  const limits = { RATE_LIMIT_MESSAGES_PER_S: 5, RATE_LIMIT_BURST: 60, BYTES_IN_FLIGHT_MAX: 25 * KIB };
  const { post, producer } = await openGateway(limits);
  const answers = [await post(batch(1)), await post('no json'), await post(batch(1), { 'content-type': 'text/plain' })];
  producer.mode = 'fail';
  answers.push(await post(batch(1)));
  producer.mode = 'hold';
  const inFlight = post(large());
  await until('a batch is in flight', () => producer.sent.length === 3);
  answers.push(await post(large()));
  producer.sent[2]?.done(null);
  answers.push(await inFlight);
  producer.mode = 'acknowledge';
  answers.push(await post(batch(50)), await post(batch(1)));
  expect(answers.map(({ status }) => status)).toEqual([200, 400, 400, 500, 429, 200, 200, 429]);
  for (const answer of answers) {
    expect(answer.headers.get('ratelimit-policy')).toBe('"messages";q=60;w=12');
    expect(limitOf(answer)).not.toBeNull();
  }
});

it('RateLimit and RateLimit-Policy are in answers without a valid key too, and describe the limit on failed keys then', async () => {
  const { url, post } = await openGateway();
  const headers = { 'content-type': 'application/json' };
  const missing = await fetch(url + MESSAGES, { method: 'POST', headers, body: '{}' });
  const wrong = await post(batch(1), { [KEY_HEADER]: 'nonsense' });
  expect([missing.status, wrong.status]).toEqual([400, 401]);
  expect(missing.headers.get('ratelimit')).toBe('"failed-keys";r=60;t=0');
  expect(wrong.headers.get('ratelimit')).toBe('"failed-keys";r=59;t=1');
  expect(wrong.headers.get('ratelimit-policy')).toBe('"failed-keys";q=60;w=60');
});

const RATE_LIMIT_FAILED_KEYS_PER_MINUTE = 3;
const tryWrong = (gateway: TestGateway, headers: Record<string, string> = {}) =>
  gateway.post(batch(1), { [KEY_HEADER]: 'nonsense', ...headers });

it('a 429 for failed keys answers an address that has used up its tries, but not its valid keys, known or new', async () => {
  const gateway = await openGateway({ RATE_LIMIT_FAILED_KEYS_PER_MINUTE });
  for (let times = 0; times < 3; times++) expect((await tryWrong(gateway)).status).toBe(401);
  const answer = await tryWrong(gateway);
  expect(answer.status).toBe(429);
  expect(Number(answer.headers.get('retry-after'))).toBeLessThanOrEqual(20);
  expect(answer.headers.get('ratelimit')).toMatch(/^"failed-keys";r=0;t=\d+$/);
  await expectEnvelope(answer, 'TOO_MANY_REQUESTS_ERROR');
  expect((await gateway.post(batch(1))).status).toBe(200);
  expect(await gateway.metrics()).toContain(
    'playline_gateway_rate_limited_total{limit="failed-keys",service="gateway"} 1',
  );
});

it('a 429 for failed keys distinguishes addresses by the header fields of trusted proxies only', async () => {
  const behind = await openGateway({ RATE_LIMIT_FAILED_KEYS_PER_MINUTE, TRUSTED_PROXIES: 1 });
  const from = (gateway: TestGateway, address: string) => tryWrong(gateway, { 'x-forwarded-for': address });
  for (let times = 0; times < 3; times++) await from(behind, '192.0.2.1');
  expect((await from(behind, '192.0.2.2, 192.0.2.1')).status).toBe(429);
  expect((await from(behind, '192.0.2.1, 192.0.2.2')).status).toBe(401);
  const open = await openGateway({ RATE_LIMIT_FAILED_KEYS_PER_MINUTE });
  for (let times = 0; times < 3; times++) await from(open, '192.0.2.1');
  expect((await from(open, '192.0.2.2')).status).toBe(429);
});

it('a 429 for missing memory answers past the bound on bytes in flight, with whole seconds to wait', async () => {
  const { post, producer } = await openGateway({ BYTES_IN_FLIGHT_MAX: 50 * KIB });
  producer.mode = 'hold';
  const inFlight = [post(large()), post(large())];
  await until('two batches are in flight', () => producer.sent.length === 2);
  const answer = await post(large());
  expect(answer.status).toBe(429);
  expect(answer.headers.get('retry-after')).toMatch(/^[1-9][0-9]*$/);
  await expectEnvelope(answer, 'TOO_MANY_REQUESTS_ERROR');
  for (const { done } of producer.sent) done(null);
  for (const response of await Promise.all(inFlight)) expect(response.status).toBe(200);
  producer.mode = 'acknowledge';
  expect((await post(large())).status).toBe(200);
});

it('a 429 for missing memory answers a body without a length as soon as it exceeds the capacity', async () => {
  const { post, producer, port, key } = await openGateway({ BYTES_IN_FLIGHT_MAX: 100 * KIB });
  producer.mode = 'hold';
  const inFlight = post(large());
  await until('a batch is in flight', () => producer.sent.length === 1);
  // The body never ends, so the answer cannot have waited for its end.
  const lines = [...headOf(key), 'transfer-encoding: chunked', '', CHUNK.repeat(20)];
  expect(await firstAnswer(port, lines)).toMatch(/^HTTP\/1\.1 429 /);
  producer.sent[0]?.done(null);
  expect((await inFlight).status).toBe(200);
});

it('a 429 for missing memory never refuses a lone request, however small the bound', async () => {
  const { post } = await openGateway({ BYTES_IN_FLIGHT_MAX: 1 });
  expect((await post(large())).status).toBe(200);
});

async function createKeyOf({ store }: TestGateway, projectId: string, environmentId: string): Promise<string> {
  const of = { projectId, environmentId, environment: 'production', kind: 'publishable' } as const;
  return (await createKey({ store, prefix: 'svcapik' }, of)).key;
}

const heldBytes = async ({ metrics }: TestGateway) =>
  Number(/playline_gateway_in_flight_bytes\{[^}]*\} (\d+)/.exec(await metrics())?.[1]);

/** Announces a body, a mebibyte unless stated, and sends so many of its bytes. */
function sendPart(port: number, key: string, bytes: number, length = MIB): Socket {
  const lines = [...headOf(key), `content-length: ${length}`, '', ' '.repeat(bytes)];
  const socket = connect(port, '127.0.0.1', () => socket.write(lines.join('\r\n')));
  onTestFinished(() => void socket.destroy());
  return socket;
}

it('a key whose bodies come slowly does not keep another project from being served', async () => {
  const gateway = await openGateway({ BYTES_IN_FLIGHT_MAX: 4 * MIB });
  const key = await createKeyOf(gateway, 'other', 'other');
  for (let caller = 0; caller < 6; caller++) sendPart(gateway.port, gateway.key, MIB - 100);
  await until('the memory is full', async () => (await heldBytes(gateway)) > 3.9 * MIB);
  const answers: number[] = [];
  for (let times = 0; times < 10; times++) answers.push((await gateway.post(large(), { [KEY_HEADER]: key })).status);
  expect(answers).toEqual(Array(10).fill(200));
});

it('a key whose bodies come slowly does not take the half of another project by keys of five environments', async () => {
  const gateway = await openGateway({ BYTES_IN_FLIGHT_MAX: 100 * KIB });
  const { port, post, producer } = gateway;
  const slow = await Promise.all([1, 2, 3, 4, 5].map((number) => createKeyOf(gateway, 'slow', `slow-${number}`)));
  for (const key of slow) sendPart(port, key, 19 * KIB, 20 * KIB);
  await until('the memory is full', async () => (await heldBytes(gateway)) === 95 * KIB);
  const key = await createKeyOf(gateway, 'other', 'other');
  producer.mode = 'hold';
  const answers = [1, 2].map(() => post(large(), { [KEY_HEADER]: key }));
  const refused = Promise.race(answers).then(({ status }) => status);
  await until('both are published', async () => producer.sent.length === 2 || Promise.race([refused, null]));
  for (const { done } of producer.sent) done(null);
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200]);
});

it('a key whose bodies come slowly is charged for what has arrived when the caller hangs up', async () => {
  const gateway = await openGateway({ RATE_LIMIT_MESSAGES_PER_S: 1, RATE_LIMIT_BURST: 1000 });
  const { port, key, post } = gateway;
  const socket = sendPart(port, key, 100 * KIB);
  await until('the part has arrived', async () => (await heldBytes(gateway)) === 100 * KIB);
  socket.destroy();
  await until('it is given up', async () => (await heldBytes(gateway)) === 0);
  const left = leftOf(await post(batch(1)));
  // The bucket gains a unit a second.
  expect(left >= 899 && left < 950).toBe(true);
});

it('a key whose bodies come slowly is charged for what has arrived when there is no memory for the rest', async () => {
  const limits = { RATE_LIMIT_MESSAGES_PER_S: 1, RATE_LIMIT_BURST: 1000, BYTES_IN_FLIGHT_MAX: 300 * KIB };
  const { port, key, post, producer } = await openGateway(limits);
  producer.mode = 'hold';
  const inFlight = post(large());
  await until('a batch is in flight', () => producer.sent.length === 1);
  const lines = [...headOf(key), 'transfer-encoding: chunked', '', CHUNK.repeat(60)];
  const answer = await firstAnswer(port, lines);
  expect(answer).toMatch(/^HTTP\/1\.1 429 /);
  const left = Number(/ratelimit: "messages";r=(\d+)/.exec(answer)?.[1]);
  expect(left).toBeLessThan(850);
  producer.sent[0]?.done(null);
  await inFlight;
});

const REQUESTS = 150;

/** A request with one message. */
function requestOf(key: string): string {
  const body = JSON.stringify({ messages: [message()] });
  return `${headOf(key).join('\r\n')}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

/** Sends them in one write on one connection. @returns the status of each */
async function sendTogether(port: number, requests: readonly string[]): Promise<string[]> {
  let text = '';
  const socket = connect(port, '127.0.0.1', () => socket.write(requests.join('')));
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
  });
  const statuses = () => [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status = '']) => status);
  await until('every request is answered', () => statuses().length === requests.length, 20_000);
  socket.destroy();
  return statuses();
}

it('admits as many requests from one packet as one by one, because each is charged when it is admitted', async () => {
  // The bucket refills by 5 messages a second: too slow to matter while this runs.
  const { port, key, producer } = await openGateway({ RATE_LIMIT_MESSAGES_PER_S: 5, RATE_LIMIT_BURST: 10 });
  const statuses = await sendTogether(
    port,
    Array.from({ length: REQUESTS }, () => requestOf(key)),
  );
  const stored = statuses.filter((status) => status === '200').length;
  expect(stored).toBeGreaterThanOrEqual(10);
  expect(stored).toBeLessThan(20);
  expect(statuses.filter((status) => status === '429')).toHaveLength(REQUESTS - stored);
  expect(producer.sent).toHaveLength(stored);
});
