import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { open, sendRaw, sendRawAndEnd } from './test/open-server.ts';

const JSON_TYPE = 'content-type: application/json\r\n';
const HEAD = `HTTP/1.1\r\nhost: a\r\n${JSON_TYPE}`;
const CHUNKED = `POST /v1/echo ${HEAD}transfer-encoding: chunked\r\n\r\n`;
const SIZED = `POST /v1/echo ${HEAD}content-length: 2\r\n\r\n{}`;
const GET = 'GET /v1/items/7 HTTP/1.1\r\nhost: a\r\n';

const parseStatuses = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => Number(status));
const parseEnvelope = (text: string) => JSON.parse(text.slice(text.lastIndexOf('\r\n\r\n'))) as Record<string, unknown>;

it.each([
  ['a body of known length', SIZED, [200]],
  ['a body in chunks', `${CHUNKED}2\r\n{}\r\n0\r\n\r\n`, [200]],
  ['no body', `${GET}\r\n`, [200]],
  ['two requests', `${SIZED}${GET}\r\n`, [200, 200]],
  ['a request that is rejected before its body is read', `POST /none ${HEAD}content-length: 9\r\n\r\n{}`, [404]],
  ['an incomplete body', `POST /v1/echo ${HEAD}content-length: 9\r\n\r\n{}`, [400]],
  ['incomplete headers', `POST /v1/echo ${HEAD}`, [400]],
  ['nothing', '', []],
])('a caller that half-closes its connection after %s gets a response per request', async (_name, bytes, statuses) => {
  const { port, statuses: counted } = await open();
  expect(parseStatuses(await sendRawAndEnd(port, bytes))).toEqual(statuses);
  expect(counted).toEqual(statuses);
});

it('a connection that sends no bytes is closed without a response, and no response is counted', async () => {
  const { port, statuses } = await open(10_000, 100);
  expect(await sendRaw(port)).toBe('');
  expect(statuses).toEqual([]);
}, 15_000);

it('a connection that sends incomplete headers gets a 500, because clients would drop a batch on a 4xx', async () => {
  const { port, statuses } = await open(10_000, 100);
  expect(parseEnvelope(await sendRaw(port, 'POST /v1/echo HTTP/1.1\r\n'))).toMatchObject({
    code: 'INTERNAL_SERVER_ERROR',
  });
  expect(statuses).toEqual([500]);
}, 15_000);

it('responses are sent in request order when a later request completes first and malformed bytes follow', async () => {
  const { port, reading } = await open();
  const socket = connect(port, '127.0.0.1', () => socket.write(SIZED.slice(0, -1)));
  await until('the first body is read', () => reading() === 1);
  const received = text(socket);
  socket.write(`}GET /none HTTP/1.1\r\nhost: a\r\n\r\n\0 not a request\r\n\r\n`);
  expect(parseStatuses(await received)).toEqual([200, 404, 400]);
});

it.each([
  ['one long header', `${GET}x: ${'a'.repeat(17_000)}\r\n\r\n`],
  ['a long path', `GET /${'a'.repeat(17_000)} HTTP/1.1\r\nhost: a\r\n\r\n`],
  ['1,001 headers', `${GET}${'a:b\r\n'.repeat(1_001)}\r\n`],
  ['trailers', `${CHUNKED}2\r\n{}\r\n0\r\nx: ${'a'.repeat(17_000)}\r\n\r\n`],
])('headers over the limit get a 431 whose message contains the limit: %s', async (_name, bytes) => {
  const { port } = await open();
  const response = await sendRaw(port, bytes);
  expect(response).toMatch(/^HTTP\/1\.1 431 Request Header Fields Too Large\r\n/);
  expect(parseEnvelope(response)).toEqual({
    message: 'The path and headers exceed 16384 bytes or 1000 headers.',
    link: 'https://docs.test/errors/VALIDATION_ERROR',
    trace_id: expect.stringMatching(/^[0-9a-f]{32}$/),
    code: 'VALIDATION_ERROR',
    details: { limitBytes: 16_384, limitHeaders: 1_000 },
  });
});

it('headers just below the limit are accepted', async () => {
  const { port } = await open();
  const many = 'a:b\r\n'.repeat(990);
  expect(parseStatuses(await sendRawAndEnd(port, `${GET}${many}x: ${'a'.repeat(12_000)}\r\n\r\n`))).toEqual([200]);
});

const REQUESTS: readonly [name: string, bytes: string, status: number, details?: object | null][] = [
  ['two hosts', `${GET}host: b\r\n\r\n`, 400, { header: 'host' }],
  ['the same host twice', `${GET}Host: a\r\n\r\n`, 400, { header: 'host' }],
  ['two hosts in one header', 'GET /v1/items/7 HTTP/1.1\r\nhost: a, b\r\n\r\n', 400, { header: 'host' }],
  ['a host with a path', 'GET /v1/items/7 HTTP/1.1\r\nhost: a/b\r\n\r\n', 400, { header: 'host' }],
  ['an empty host', 'GET /v1/items/7 HTTP/1.1\r\nhost:\r\n\r\n', 200],
  ['an IPv6 host with a port', 'GET /v1/items/7 HTTP/1.1\r\nhost: [2001:db8::1]:80\r\n\r\n', 200],
  ['two equal lengths', `POST /v1/echo ${HEAD}content-length: 2\r\ncontent-length: 2\r\n\r\n{}`, 400],
  ['a list of lengths', `POST /v1/echo ${HEAD}content-length: 2, 2\r\n\r\n{}`, 400],
  ['a length with a sign', `POST /v1/echo ${HEAD}content-length: +2\r\n\r\n{}`, 400],
  ['a length beyond the integer range', `POST /v1/echo ${HEAD}content-length: ${'9'.repeat(30)}\r\n\r\n{}`, 400],
  ['a length with chunks', `${CHUNKED.slice(0, -2)}content-length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n`, 400],
  [
    'a transfer coding that is not chunked',
    `POST /v1/echo ${HEAD}transfer-encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    400,
    { header: 'transfer-encoding' },
  ],
  ['chunks that are not the last coding', `POST /v1/echo ${HEAD}transfer-encoding: chunked, gzip\r\n\r\n{}`, 400],
  ['a folded header', `${GET}x: a\r\n b\r\n\r\n`, 400],
  ['a lone CR in a header', `${GET}x: a\rb\r\n\r\n`, 400],
  ['lines without CR', `${GET.replaceAll('\r', '')}\n`, 400],
  ['a NUL in a header', `${GET}x: a\0b\r\n\r\n`, 400],
  ['a space before a colon', `${GET}x : b\r\n\r\n`, 400],
  ['a header without a colon', `${GET}x\r\n\r\n`, 400],
  ['a header in Latin-1', `${GET}x: \xe4\r\n\r\n`, 200],
  ['an absolute target', `POST http://a:80/v1/echo ${HEAD}content-length: 2\r\n\r\n{}`, 200],
  ['an absolute target without a path', 'GET http://a HTTP/1.1\r\nhost: a\r\n\r\n', 404],
  ['a target in authority form', 'GET a:80 HTTP/1.1\r\nhost: a\r\n\r\n', 400],
  ['a target in asterisk form', 'OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n', 404],
  ['a target with a fragment', `POST /v1/echo#x ${HEAD}content-length: 2\r\n\r\n{}`, 400, null],
  ['a target in UTF-8', 'GET /v1/items/\xc3\xa4 HTTP/1.1\r\nhost: a\r\n\r\n', 400],
  ['HTTP/1.0', 'GET /v1/items/7 HTTP/1.0\r\n\r\n', 200],
  ['HTTP/0.9', 'GET /v1/items/7\r\n\r\n', 400, null],
  ['HTTP/2.0 in text form', 'GET /v1/items/7 HTTP/2.0\r\nhost: a\r\n\r\n', 400, null],
  ['the HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400],
  ['a TLS ClientHello', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 400],
  ['a method that does not exist', 'FOO /v1/items/7 HTTP/1.1\r\nhost: a\r\n\r\n', 400],
  ['TRACE', 'TRACE /v1/items/7 HTTP/1.1\r\nhost: a\r\n\r\n', 404],
  ['an upgrade to another protocol', `${GET}connection: upgrade\r\nupgrade: websocket\r\n\r\n`, 200],
  ['chunk extensions', `${CHUNKED}2;a=b\r\n{}\r\n0;c\r\n\r\n`, 200],
  ['chunk extensions over the limit', `${CHUNKED}2;a=${'b'.repeat(17_000)}\r\n{}\r\n`, 400, { limitBytes: 16_384 }],
  ['chunk extensions with a lone CR', `${CHUNKED}2;a\rb\r\n{}\r\n0\r\n\r\n`, 400],
  ['chunks without CR', `${CHUNKED}2\n{}\n0\n\n`, 400],
  ['a chunk with more bytes than its declared length', `${CHUNKED}1\r\n{}\r\n0\r\n\r\n`, 400],
  ['a chunk size beyond the integer range', `${CHUNKED}${'f'.repeat(17)}\r\n{}\r\n0\r\n\r\n`, 400],
  ['trailers', `${CHUNKED}2\r\n{}\r\n0\r\nx: 1\r\n\r\n`, 200],
  ['leading empty lines', `\r\n\r\n${GET}\r\n`, 200],
];

it.each(REQUESTS)('a request with %s gets exactly one response', async (_name, bytes, status, details) => {
  const { port } = await open();
  const response = await sendRawAndEnd(port, bytes);
  expect(parseStatuses(response)).toEqual([status]);
  if (status === 400)
    expect(parseEnvelope(response)).toMatchObject({ code: 'VALIDATION_ERROR', trace_id: expect.any(String) });
  if (details !== undefined) expect(parseEnvelope(response)).toMatchObject({ details });
});

it('a request with Expect: 100-continue gets a 100 before the response', async () => {
  const { port } = await open();
  const response = await sendRawAndEnd(port, SIZED.replace('\r\n', '\r\nexpect: 100-continue\r\n'));
  expect(parseStatuses(response)).toEqual([100, 200]);
});

it('an absolute target is handled like its path, including CORS headers', async () => {
  const { port } = await open();
  expect(await sendRawAndEnd(port, SIZED.replace('/v1', 'HTTP://a/v1'))).toContain('access-control-allow-origin: *');
});
