import { expect, it } from 'vitest';
import { createHttpApp } from './app.ts';
import { corsHeaders } from './exchange.ts';
import { openHttpServer } from './server.ts';
import { expectEnvelope, json, open, post, sendRaw } from './test/open-server.ts';

it('an answer carries the trace id of a valid traceparent', async () => {
  const { url } = await open();
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
  const answer = await post(url, '{}', { ...json, traceparent: `00-${traceId}-00f067aa0ba902b7-01` });
  expect(answer.headers.get('x-trace-id')).toBe(traceId);
});

it('an answer names no software', async () => {
  const { url } = await open();
  for (const answer of [await post(url, '{}'), await fetch(`${url}/v1/items/7`), await fetch(`${url}/none`)]) {
    expect(answer.headers.get('x-powered-by')).toBeNull();
    expect(answer.headers.get('server')).toBeNull();
    expect(answer.headers.get('etag')).toBeNull();
  }
});

it('an answer comes from hot and other routes alike, with and without a query', async () => {
  const { url } = await open();
  expect(await (await post(url, '{}')).json()).toEqual({ bytes: 2, text: '{}' });
  expect((await fetch(`${url}/v1/echo?a=b`, { method: 'POST', body: '{}', headers: json })).status).toBe(200);
  expect(await (await fetch(`${url}/v1/items/7?a=b`)).json()).toEqual({ id: '7' });
});

it.each(['/v1/echo/', '//v1/echo', '/v1//echo//', '/v1/echo/?a=//'])(
  'a path of an operation with a publishable key is served with slashes too many: %s',
  async (path) => {
    const { url } = await open();
    const answer = await fetch(url + path, { method: 'POST', body: '{}', headers: json });
    expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([200, '*']);
  },
);

it.each([
  ['GET', '/'],
  ['GET', '/v1/echo'],
  ['POST', '/v1/echo/x'],
  ['POST', '/V1/echo'],
  ['PATCH', '/v1/echo'],
  ['OPTIONS', '/v1/broken'],
  ['OPTIONS', '/v1/nowhere'],
  ['POST', '/v1/items/7'],
])('an envelope 404 answers %s %s', async (method, path) => {
  const { url } = await open();
  await expectEnvelope(await fetch(url + path, { method }), 'RESOURCE_NOT_FOUND');
});

it('an envelope 404 answers HEAD with the headers alone', async () => {
  const { url } = await open();
  const answer = await fetch(`${url}/v1/echo`, { method: 'HEAD' });
  expect([answer.status, await answer.text()]).toEqual([404, '']);
});

it('an envelope 500 answers a handler that throws, leaks nothing and reports the fault once', async () => {
  const { url, faults } = await open();
  const answer = await fetch(`${url}/v1/broken`, { method: 'DELETE' });
  expect(await answer.clone().text()).not.toContain('hunter2');
  await expectEnvelope(answer, 'INTERNAL_SERVER_ERROR');
  expect(faults).toEqual([new Error('password hunter2')]);
});

it('an envelope 400 answers a path that is not percent-encoding', async () => {
  const { url } = await open();
  await expectEnvelope(await fetch(`${url}/v1/items/%zz`), 'VALIDATION_ERROR');
});

it.each(['text/plain', 'application/jsonp', 'application/vnd.api+json', 'application/json; charset=latin1', ''])(
  'an envelope 400 answers content type %j',
  async (type) => {
    const { url } = await open();
    const body = new Blob(['{}']);
    const answer = await post(url, body, type === '' ? {} : { 'content-type': type });
    await expectEnvelope(answer, 'VALIDATION_ERROR', { header: 'content-type' });
  },
);

it.each(['application/json', 'application/json;charset=UTF-8', 'Application/JSON ; charset="utf-8"; v=1'])(
  'an envelope is not given for content type %j',
  async (type) => {
    const { url } = await open();
    expect((await post(url, '{}', { 'content-type': type })).status).toBe(200);
  },
);

it.each(['compress', 'gzip, gzip', 'constructor'])('an envelope 400 answers content encoding %j', async (encoding) => {
  const { url } = await open();
  const answer = await post(url, '{}', { ...json, 'content-encoding': encoding });
  await expectEnvelope(answer, 'VALIDATION_ERROR', { header: 'content-encoding' });
});

it.each([
  ['no HTTP', 'nonsense\r\n\r\n'],
  [
    'a broken chunk',
    'POST /v1/echo HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n',
  ],
  ['two lengths', 'POST /v1/echo HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n'],
])('an envelope 400 answers %s and ends the connection', async (_name, bytes) => {
  const { port } = await open();
  const text = await sendRaw(port, bytes);
  expect(text).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
  expect(JSON.parse(text.slice(text.indexOf('\r\n\r\n')))).toMatchObject({ code: 'VALIDATION_ERROR', details: null });
});

it('an envelope for a body that breaks off belongs to its request: same trace, same CORS headers', async () => {
  const { port } = await open();
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
  const lines = ['POST /v1/echo HTTP/1.1', 'host: a', 'content-type: application/json', 'transfer-encoding: chunked'];
  const text = await sendRaw(
    port,
    [...lines, `traceparent: 00-${traceId}-00f067aa0ba902b7-01`, '', 'zz', ''].join('\r\n'),
  );
  expect(text).toContain(`"trace_id":"${traceId}"`);
  expect(text).toContain('access-control-allow-origin: *');
  expect(text.match(/HTTP\/1\.1/g)).toHaveLength(1);
});

it('an envelope 404 answers CONNECT', async () => {
  const { port } = await open();
  expect(await sendRaw(port, 'CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n')).toContain('"code":"RESOURCE_NOT_FOUND"');
});

it('an envelope 400 answers a request without a host, which HTTP/1.0 alone allows', async () => {
  const { port } = await open();
  const text = await sendRaw(port, 'GET /v1/items/7 HTTP/1.1\r\nconnection: close\r\n\r\n');
  expect(text).toMatch(/^HTTP\/1\.1 400 /);
  expect(text).toContain('"code":"VALIDATION_ERROR","details":{"header":"host"}');
  expect(await sendRaw(port, 'GET /v1/items/7 HTTP/1.0\r\n\r\n')).toContain('{"id":"7"}');
});

it('ignores an expectation that nobody can meet, on hot and other paths alike', async () => {
  const { port } = await open();
  const rest = 'HTTP/1.1\r\nhost: a\r\nexpect: gifts\r\nconnection: close\r\ncontent-type: application/json\r\n';
  expect(await sendRaw(port, `GET /v1/items/7 ${rest}\r\n`)).toMatch(/^HTTP\/1\.1 200 /);
  expect(await sendRaw(port, `POST /v1/echo ${rest}content-length: 2\r\n\r\n{}`)).toMatch(/^HTTP\/1\.1 200 /);
});

it('an answer without a body says no length in a 304, where it would be that of the body that was not sent', async () => {
  const answer = await fetch(`${(await open()).url}/v1/same`);
  expect(answer.status).toBe(304);
  expect(answer.headers.get('etag')).toBe('"1"');
  expect(answer.headers.get('content-length')).toBeNull();
});

it('the count of answers has each answer once, those to what was no request too', async () => {
  const { port, url, statuses } = await open();
  await fetch(`${url}/v1/items/7`);
  await sendRaw(port, 'nonsense\r\n\r\n');
  await sendRaw(port, 'CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n');
  await sendRaw(port, 'POST /v1/echo HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n');
  expect(statuses).toEqual([200, 400, 404, 400]);
});

it('CORS answers the preflight of a publishable-key operation for any origin', async () => {
  const { url } = await open();
  const headers = { origin: 'https://game.test', 'access-control-request-method': 'POST' };
  const answer = await fetch(`${url}/v1/echo`, { method: 'OPTIONS', headers });
  expect(answer.status).toBe(204);
  expect(answer.headers.get('access-control-allow-origin')).toBe('*');
  expect(answer.headers.get('access-control-allow-methods')).toBe('POST, GET, PUT');
  expect(answer.headers.get('access-control-max-age')).toBe('7200');
  expect(answer.headers.get('access-control-allow-credentials')).toBeNull();
  expect(answer.headers.get('access-control-allow-headers')).toBe(
    'content-type, content-encoding, x-service-publishable-key, traceparent',
  );
});

it('CORS allows no key header where no operation takes a publishable key', () => {
  expect(corsHeaders(undefined).preflight).toContain('content-type, content-encoding, traceparent');
});

it('CORS lets a page read answers and errors of such an operation', async () => {
  const { url } = await open();
  for (const answer of [await post(url, '{}'), await post(url, '{}', {}), await fetch(`${url}/v1/echo`)]) {
    expect(answer.headers.get('access-control-allow-origin')).toBe('*');
    expect(answer.headers.get('access-control-expose-headers')).toBe(
      'Retry-After, RateLimit, RateLimit-Policy, x-trace-id',
    );
  }
});

it.each([
  ['POST', '/v1/ecko'],
  ['PUT', '/nowhere'],
  ['DELETE', '/v1/echo'],
  ['GET', '/v1/%zz'],
])('CORS lets a page read that there is no %s %s, and preflight it', async (method, path) => {
  const { url } = await open();
  const headers = { origin: 'https://game.test', 'access-control-request-method': method };
  const preflight = await fetch(url + path, { method: 'OPTIONS', headers });
  const answer = await fetch(url + path, { method });
  expect([preflight.status, Math.floor(answer.status / 100)]).toEqual([204, 4]);
  expect(preflight.headers.get('access-control-allow-methods')).toBe('POST, GET, PUT');
  for (const each of [preflight, answer]) expect(each.headers.get('access-control-allow-origin')).toBe('*');
});

it('CORS has no headers for an unknown path of a service that pages may not call', async () => {
  const app = createHttpApp({ link: (code) => code, routes: [] });
  const server = await openHttpServer({ app, host: '127.0.0.1', port: 0 });
  const headers = { origin: 'https://game.test', 'access-control-request-method': 'GET' };
  const answer = await fetch(`http://127.0.0.1:${server.port}/none`, { method: 'OPTIONS', headers });
  expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([404, null]);
  await server.close();
});

it('CORS sends no header at all for any other operation', async () => {
  const { url } = await open();
  const headers = { origin: 'https://game.test', 'access-control-request-method': 'DELETE' };
  for (const method of ['DELETE', 'OPTIONS']) {
    const answer = await fetch(`${url}/v1/broken`, { method, headers });
    expect([...answer.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([]);
  }
});
