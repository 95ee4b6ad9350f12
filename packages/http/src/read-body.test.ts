import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { brotliCompressSync, constants, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { PublicError } from '@playline/errors';
import { until } from '@playline/testkit';
import { expect, expectTypeOf, it, vi } from 'vitest';
import { createHttpApp } from './app.ts';
import { planFormBody, planJsonBody, type UseBodyOptions, useBody } from './read-body.ts';
import { openHttpServer } from './server.ts';
import { expectEnvelope, json, LIMIT, open, post, sendRaw } from './test/open-server.ts';

const HEAD = 'POST /v1/echo HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n';
const NEXT = 'GET /v1/items/9 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n';

/** Sends headers and the start of a body, then `more` every `intervalMs`. @returns the first chunk of the response */
async function responseTo(port: number, sent: string, more = '', intervalMs = 60_000): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.write(HEAD + sent);
  const interval = setInterval(() => socket.write(more), intervalMs);
  const [chunk] = await once(socket, 'data');
  clearInterval(interval);
  socket.destroy();
  return String(chunk);
}

/** At this quality a bomb is just as small but is created ten times as fast. */
const quickBrotliSync = (bytes: Buffer) =>
  brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } });

it.each([
  ['gzip', gzipSync],
  ['x-gzip', gzipSync],
  ['deflate', deflateSync],
  ['deflate', deflateRawSync],
  ['BR', brotliCompressSync],
  ['zstd', zstdCompressSync],
])('a body encoded with %s is decoded', async (encoding, compress) => {
  const { url } = await open();
  const response = await post(url, compress(Buffer.from('[1,2,3]')), { ...json, 'content-encoding': encoding });
  expect(await response.json()).toEqual({ bytes: 7, text: '[1,2,3]' });
});

it('a chunked body of unknown length is read', async () => {
  const { url } = await open();
  const stream = new ReadableStream({
    start(controller) {
      for (const chunk of ['[1,', '2,', '3]']) controller.enqueue(Buffer.from(chunk));
      controller.close();
    },
  });
  const response = await fetch(`${url}/v1/echo`, { method: 'POST', body: stream, headers: json, duplex: 'half' });
  expect(await response.json()).toEqual({ bytes: 7, text: '[1,2,3]' });
});

it('a body of exactly the limit is accepted and a longer body is rejected, compressed or uncompressed', async () => {
  const { url } = await open();
  // Random bytes, so that the compressed body is longer than the body itself.
  const full = randomBytes(LIMIT);
  const tooLong = Buffer.concat([full, Buffer.alloc(1)]);
  for (const [body, status] of [
    [full, 200],
    [tooLong, 400],
  ] as const) {
    expect((await post(url, body)).status).toBe(status);
    expect((await post(url, gzipSync(body), { ...json, 'content-encoding': 'gzip' })).status).toBe(status);
  }
});

it.each([
  ['gzip', gzipSync],
  ['deflate', deflateSync],
  ['br', quickBrotliSync],
  ['zstd', zstdCompressSync],
])('a %s bomb is rejected with the limit in the response, and is not decompressed', async (encoding, compress) => {
  const { url } = await open();
  const bomb = compress(Buffer.alloc(64 * 1024 * 1024));
  const before = process.memoryUsage.rss();
  const response = await post(url, bomb, { ...json, 'content-encoding': encoding });
  await expectEnvelope(response, 'VALIDATION_ERROR', { limitBytes: LIMIT });
  expect(process.memoryUsage.rss() - before).toBeLessThan(32 * 1024 * 1024);
});

it.each([
  ['gzip', gzipSync],
  ['deflate', deflateSync],
  ['br', brotliCompressSync],
  ['zstd', zstdCompressSync],
])('a body with invalid %s is rejected', async (encoding, compress) => {
  const { url } = await open();
  const compressed = compress(randomBytes(1000));
  for (const body of [compressed.subarray(0, 500), Buffer.from('nonsense'), Buffer.alloc(0)]) {
    const response = await post(url, body, { ...json, 'content-encoding': encoding });
    await expectEnvelope(response, 'VALIDATION_ERROR', { header: 'content-encoding' });
  }
});

it.each([
  ['gzip', gzipSync],
  ['deflate', deflateSync],
  ['deflate', deflateRawSync],
  ['br', quickBrotliSync],
  ['zstd', zstdCompressSync],
])('a body with bytes after the end of its %s data is rejected', async (encoding, compress) => {
  const { url } = await open();
  for (const body of [Buffer.from('[1,2,3]'), randomBytes(LIMIT - 1000)]) {
    const compressed = compress(body);
    const headers = { ...json, 'content-encoding': encoding };
    expect((await post(url, compressed, headers)).status).toBe(200);
    for (const rest of [
      Buffer.alloc(1),
      Buffer.from('[4]'),
      ...(encoding === 'gzip' ? [] : [compress(Buffer.from('[4]'))]),
    ]) {
      const response = await post(url, Buffer.concat([compressed, rest]), headers);
      await expectEnvelope(response, 'VALIDATION_ERROR', { header: 'content-encoding' });
    }
  }
});

it('a body with several gzip members is read completely', async () => {
  const { url } = await open();
  const members = Buffer.concat([gzipSync('[1,'), gzipSync('2]')]);
  const response = await post(url, members, { ...json, 'content-encoding': 'gzip' });
  expect(await response.json()).toEqual({ bytes: 5, text: '[1,2]' });
});

it('a caller that declares and sends a body above the limit receives a response', async () => {
  const { port } = await open();
  const text = await sendRaw(port, `${HEAD}content-length: ${4 * LIMIT}\r\n\r\n`, Buffer.alloc(4 * LIMIT), NEXT);
  expect(text).toContain(`"details":{"limitBytes":${LIMIT}}`);
  expect(text.indexOf('{"id":"9"}')).toBeGreaterThan(0);
});

it('a chunked body above the limit gets a response, and the connection stays open', async () => {
  const { port } = await open();
  const head = `${HEAD}transfer-encoding: chunked\r\n\r\n`;
  const chunk = Buffer.concat([Buffer.from('40000\r\n'), Buffer.alloc(0x40000), Buffer.from('\r\n')]);
  const text = await sendRaw(port, head, ...Array.from({ length: 8 }, () => chunk), '0\r\n\r\n', NEXT);
  expect(text).toContain(`"details":{"limitBytes":${LIMIT}}`);
  expect(text).toContain('{"id":"9"}');
});

it('a body that is rejected before it is read does not close the connection', async () => {
  const { port } = await open();
  const head = `POST /v1/refuse HTTP/1.1\r\nhost: a\r\ncontent-length: ${2 * LIMIT}\r\n\r\n`;
  const text = await sendRaw(port, head, Buffer.alloc(2 * LIMIT), NEXT);
  expect(text).toMatch(/^HTTP\/1\.1 429 /);
  expect(text).toContain('\r\nretry-after: 1\r\n');
  expect(text).toContain('{"id":"9"}');
});

it('the connection is closed if an endless body follows a rejected request', async () => {
  const { port } = await open();
  const head = `POST /v1/refuse HTTP/1.1\r\nhost: a\r\ncontent-length: ${1024 * LIMIT}\r\n\r\n`;
  const sent = await new Promise<number>((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.write(head);
      const more = () => socket.write(Buffer.alloc(LIMIT), (error) => error == null && more());
      more();
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(socket.bytesWritten));
  });
  expect(sent).toBeLessThan(64 * LIMIT);
});

it('a body that arrives too slowly gets a 500, because a retry may succeed', async () => {
  const { port, faults } = await open(50);
  const text = await responseTo(port, 'content-length: 10\r\n\r\n{');
  expect(text).toMatch(/^HTTP\/1\.1 500 /);
  expect(String((faults[0] as Error).cause)).toContain('body too slow');
});

it('a stalled body is aborted long before the time limit for a body', async () => {
  const { port } = await open(4000);
  const startAt = performance.now();
  const text = await responseTo(port, `content-length: 100000\r\n\r\n${' '.repeat(99_000)}`, ' ', 20);
  expect(text).toMatch(/^HTTP\/1\.1 500 /);
  expect(performance.now() - startAt).toBeLessThan(3000);
});

it('a body that arrives slowly but steadily is read completely', async () => {
  const { port } = await open(4000);
  const text = await responseTo(port, 'content-length: 2800\r\n\r\n', ' '.repeat(100), 100);
  expect(text).toMatch(/^HTTP\/1\.1 200 /);
});

it('an incomplete body is aborted immediately when the caller half-closes the connection', async () => {
  const { port, reading } = await open(60_000);
  const socket = connect(port, '127.0.0.1', () => socket.write(`${HEAD}content-length: 10\r\n\r\n{`));
  await until('the body is being read', () => reading() === 1);
  socket.end();
  await until('the body is aborted', () => reading() === 0, 5_000);
});

it('a caller that disconnects while sending a body is not reported as a fault', async () => {
  const { port, url, faults } = await open();
  const socket = connect(port, '127.0.0.1');
  socket.write(`${HEAD}content-length: 10\r\n\r\n{`, () => socket.destroy());
  await once(socket, 'close');
  expect((await fetch(`${url}/v1/items/1`)).status).toBe(200);
  expect(faults).toEqual([]);
});

it.each([
  [16 * 1024, 18 * 1024 + 1],
  [LIMIT, 1.07 * LIMIT],
])('a body limit of %i bytes allows slightly longer compressed bodies for every encoding', (limit, most) => {
  const createPlan = (length: number) => {
    const headers = { ...json, 'content-encoding': 'gzip', 'content-length': String(length) };
    return planJsonBody({ headers } as unknown as IncomingMessage, limit);
  };
  const full = randomBytes(limit);
  for (const compress of [gzipSync, deflateSync, deflateRawSync, quickBrotliSync, zstdCompressSync])
    expect(() => createPlan(compress(full).length)).not.toThrow();
  expect(() => createPlan(most)).toThrow(PublicError);
});

it('a form body is accepted only as application/x-www-form-urlencoded', () => {
  const createPlan = (type: string) =>
    planFormBody({ headers: { 'content-type': type } } as unknown as IncomingMessage, LIMIT);
  expect(createPlan('application/x-www-form-urlencoded; charset=UTF-8').bytesMax).toBe(LIMIT);
  for (const type of ['application/json', 'text/plain', 'multipart/form-data; boundary=a'])
    expect(() => createPlan(type)).toThrow('The body must be application/x-www-form-urlencoded.');
});

it('the compiler rejects an async `use` function, because the bytes are valid only until it returns', () => {
  expectTypeOf<UseBodyOptions<Promise<number>>['use']>().returns.toBeNever();
  expectTypeOf<UseBodyOptions<number | null>['use']>().returns.toEqualTypeOf<number | null>();
});

async function recordOrder(body: Buffer, headers: string): Promise<string[]> {
  const order: string[] = [];
  const app = createHttpApp({
    publishableKeyHeader: 'x-key',
    link: (code) => code,
    routes: [
      {
        method: 'POST',
        path: '/use',
        hot: true,
        handle: async (exchange) => {
          order.push('admitted');
          const plan = planJsonBody(exchange.request, LIMIT);
          await useBody(exchange.request, plan, { use: (bytes) => void order.push(`used ${bytes.length}`) });
          exchange.answerEmpty(204);
        },
      },
    ],
  });
  const server = await openHttpServer({ app, host: '127.0.0.1', port: 0 });
  const head = `POST /use HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n${headers}content-length: ${body.length}\r\n`;
  const request = (last: string) => Buffer.concat([Buffer.from(`${head}${last}\r\n`), body]);
  await sendRaw(server.port, Buffer.concat([request(''), request(''), request('connection: close\r\n')]));
  await server.close();
  return order;
}

it('bodies that arrive in one packet are used together after all requests are admitted', async () => {
  const order = await recordOrder(Buffer.from('[1]'), '');
  expect(order).toEqual(['admitted', 'admitted', 'admitted', 'used 3', 'used 3', 'used 3']);
});

it('at most two compressed bodies in one packet are admitted before a body is used and charged', async () => {
  const order = await recordOrder(gzipSync(Buffer.from('[1]')), 'content-encoding: gzip\r\n');
  expect(order).toHaveLength(6);
  const unread = order.map((_, at) => at + 1 - 2 * order.slice(0, at + 1).filter((each) => each === 'used 3').length);
  expect(Math.max(...unread)).toBeLessThanOrEqual(2);
});

it('many bodies in one packet cause no listener warning', async () => {
  const onWarning = vi.fn();
  process.on('warning', onWarning);
  const { port } = await open();
  const headers = `${HEAD}content-length: 2\r\n`;
  const responses = await sendRaw(port, `${headers}\r\n[]`.repeat(40), `${headers}connection: close\r\n\r\n[]`);
  await new Promise(setImmediate);
  process.off('warning', onWarning);
  expect(responses.match(/HTTP\/1\.1 200/g)).toHaveLength(41);
  expect(onWarning).not.toHaveBeenCalled();
});
