import type { IncomingMessage } from 'node:http';
import { BlockList, isIPv6 } from 'node:net';
import { PublicError } from '@playline/errors';
import { createLogger, createMetrics } from '@playline/runtime';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createClientAddress, createFailureLog, createRequestDurations, type Route, toNetwork } from './app.ts';
import { corsHeaders } from './exchange.ts';
import { expectEnvelope, json, open, post, sendRaw, serve } from './test/open-server.ts';

it('response headers do not reveal the server software', async () => {
  const { url } = await open();
  for (const response of [await post(url, '{}'), await fetch(`${url}/v1/items/7`), await fetch(`${url}/none`)]) {
    expect(response.headers.get('x-powered-by')).toBeNull();
    expect(response.headers.get('server')).toBeNull();
    expect(response.headers.get('etag')).toBeNull();
  }
});

it.each(['/v1/echo/', '//v1/echo', '/v1//echo//', '/v1/echo/?a=//'])(
  'a path that accepts publishable keys may contain extra slashes: %s',
  async (path) => {
    const { url } = await open();
    const response = await fetch(url + path, { method: 'POST', body: '{}', headers: json });
    expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([200, '*']);
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
])('%s %s gets a 404 envelope', async (method, path) => {
  const { url } = await open();
  await expectEnvelope(await fetch(url + path, { method }), 'RESOURCE_NOT_FOUND');
});

it('HEAD gets the headers of the 404 response without a body', async () => {
  const { url } = await open();
  const response = await fetch(`${url}/v1/echo`, { method: 'HEAD' });
  expect([response.status, await response.text()]).toEqual([404, '']);
});

it('a handler that throws gets a 500 envelope without the error message, and the fault is reported once', async () => {
  const { url, faults } = await open();
  const response = await fetch(`${url}/v1/broken`, { method: 'DELETE' });
  expect(await response.clone().text()).not.toContain('hunter2');
  await expectEnvelope(response, 'INTERNAL_SERVER_ERROR');
  expect(faults).toEqual([new Error('password hunter2')]);
});

it('a path with invalid percent-encoding gets a 400 envelope', async () => {
  const { url } = await open();
  await expectEnvelope(await fetch(`${url}/v1/items/%zz`), 'VALIDATION_ERROR');
});

it.each(['text/plain', 'application/jsonp', 'application/vnd.api+json', 'application/json; charset=latin1', ''])(
  'content type %j gets a 400 envelope',
  async (type) => {
    const { url } = await open();
    const body = new Blob(['{}']);
    const response = await post(url, body, type === '' ? {} : { 'content-type': type });
    await expectEnvelope(response, 'VALIDATION_ERROR', { header: 'content-type' });
  },
);

it.each(['application/json', 'application/json;charset=UTF-8', 'Application/JSON ; charset="utf-8"; v=1'])(
  'content type %j is accepted',
  async (type) => {
    const { url } = await open();
    expect((await post(url, '{}', { 'content-type': type })).status).toBe(200);
  },
);

it.each(['compress', 'gzip, gzip', 'constructor'])('content encoding %j gets a 400 envelope', async (encoding) => {
  const { url } = await open();
  const response = await post(url, '{}', { ...json, 'content-encoding': encoding });
  await expectEnvelope(response, 'VALIDATION_ERROR', { header: 'content-encoding' });
});

it.each([
  ['a line that is not HTTP', 'nonsense\r\n\r\n'],
  [
    'a broken chunk',
    'POST /v1/echo HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n',
  ],
  [
    'a request with two content lengths',
    'POST /v1/echo HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n',
  ],
])('%s gets a 400 envelope, and the connection is closed', async (_name, bytes) => {
  const { port } = await open();
  const text = await sendRaw(port, bytes);
  expect(text).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
  expect(JSON.parse(text.slice(text.indexOf('\r\n\r\n')))).toMatchObject({ code: 'VALIDATION_ERROR', details: null });
});

it('the error response for an incomplete body contains the trace id and the CORS headers of its request', async () => {
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

it('CONNECT gets a 404 envelope', async () => {
  const { port } = await open();
  expect(await sendRaw(port, 'CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n')).toContain('"code":"RESOURCE_NOT_FOUND"');
});

it('a request without a host gets a 400 envelope in HTTP/1.1 and a 200 in HTTP/1.0', async () => {
  const { port } = await open();
  const text = await sendRaw(port, 'GET /v1/items/7 HTTP/1.1\r\nconnection: close\r\n\r\n');
  expect(text).toMatch(/^HTTP\/1\.1 400 /);
  expect(text).toContain('"code":"VALIDATION_ERROR","details":{"header":"host"}');
  expect(await sendRaw(port, 'GET /v1/items/7 HTTP/1.0\r\n\r\n')).toContain('{"id":"7"}');
});

it('an unknown Expect header is ignored on hot and cold routes', async () => {
  const { port } = await open();
  const rest = 'HTTP/1.1\r\nhost: a\r\nexpect: gifts\r\nconnection: close\r\ncontent-type: application/json\r\n';
  expect(await sendRaw(port, `GET /v1/items/7 ${rest}\r\n`)).toMatch(/^HTTP\/1\.1 200 /);
  expect(await sendRaw(port, `POST /v1/echo ${rest}content-length: 2\r\n\r\n{}`)).toMatch(/^HTTP\/1\.1 200 /);
});

it('a 304 response has no content-length header', async () => {
  const response = await fetch(`${(await open()).url}/v1/same`);
  expect(response.status).toBe(304);
  expect(response.headers.get('etag')).toBe('"1"');
  expect(response.headers.get('content-length')).toBeNull();
});

it('each response is counted once, including responses to malformed requests', async () => {
  const { port, url, statuses } = await open();
  await fetch(`${url}/v1/items/7`);
  await sendRaw(port, 'nonsense\r\n\r\n');
  await sendRaw(port, 'CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n');
  await sendRaw(port, 'POST /v1/echo HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n');
  expect(statuses).toEqual([200, 400, 404, 400]);
});

it('CORS headers allow no key header in a service without publishable keys', () => {
  expect(corsHeaders(undefined).preflight).toContain('content-type, content-encoding, traceparent');
});

it.each([
  ['POST', '/v1/ecko'],
  ['PUT', '/nowhere'],
  ['DELETE', '/v1/echo'],
  ['GET', '/v1/%zz'],
])('CORS headers let web pages read the 4xx response to %s %s, and its preflight', async (method, path) => {
  const { url } = await open();
  const headers = { origin: 'https://game.test', 'access-control-request-method': method };
  const preflight = await fetch(url + path, { method: 'OPTIONS', headers });
  const response = await fetch(url + path, { method });
  expect([preflight.status, Math.floor(response.status / 100)]).toEqual([204, 4]);
  expect(preflight.headers.get('access-control-allow-methods')).toBe('POST, GET, PUT');
  for (const each of [preflight, response]) expect(each.headers.get('access-control-allow-origin')).toBe('*');
});

it('responses for unknown paths have no CORS headers in a service without publishable keys', async () => {
  const { url } = await serve({});
  const headers = { origin: 'https://game.test', 'access-control-request-method': 'GET' };
  const response = await fetch(`${url}/none`, { method: 'OPTIONS', headers });
  expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([404, null]);
});

async function openRoutes(hot: boolean): Promise<string> {
  const toRoute = (path: string): Route => ({
    method: 'GET',
    path,
    hot,
    handle: (exchange, params) => exchange.answer(200, JSON.stringify({ path, params })),
  });
  const paths = ['/v1/chains/:chain/history', '/v1/chains/:chain/tokens/:address', '/v1/all'];
  return (await serve({ routes: paths.map(toRoute) })).url;
}

const PATHS = [
  ...['/v1/all', '/v1/all/', '/V1/all', '/v1/all?a=b', '/v1/chains/main/history', '/v1/chains/main/history?a=%20'],
  ...['/v1/chains/main/history/', '/v1/chains//history', '/v1/chains/main/History', '/v1/chains/a/b/history'],
  ...['/v1/chains/:chain/history', '/v1/chains/m%61in/history', '/v1/chains/%ff/history', '/v1/chains/m%2fn/history'],
  ...[
    "/v1/chains/it's/history",
    '/v1/chains/a+b/history',
    '/v1/chains/__proto__/history',
    '/v1/chains/main/tokens/0x1',
  ],
];

it.each(PATHS)('a hot route responds to GET and HEAD %s like Express', async (path) => {
  const [hot, cold] = [await openRoutes(true), await openRoutes(false)];
  for (const method of ['GET', 'HEAD']) {
    const hotResponse = await fetch(hot + path, { method });
    const coldResponse = await fetch(cold + path, { method });
    expect(hotResponse.status).toBe(coldResponse.status);
    const withoutTrace = async (response: Response) => (await response.text()).replace(/"trace_id":"\w+"/, '');
    expect(await withoutTrace(hotResponse)).toBe(await withoutTrace(coldResponse));
  }
});

function addressOf(trustedProxies: number, remoteAddress: string | undefined, forwarded?: string): string {
  const request = { headers: { 'x-forwarded-for': forwarded }, socket: { remoteAddress } };
  return createClientAddress(trustedProxies)(request as unknown as IncomingMessage);
}

it("the client address is the connection's address if no proxy is trusted, regardless of the header", () => {
  expect(addressOf(0, '192.0.2.9', '198.51.100.1')).toBe('192.0.2.9');
  expect(addressOf(0, '::ffff:192.0.2.9')).toBe('192.0.2.9');
});

it('the client address is the address from which the outermost trusted proxy was called', () => {
  const forwarded = '203.0.113.66, 198.51.100.1, 192.0.2.1';
  expect(addressOf(1, '127.0.0.1', forwarded)).toBe('192.0.2.1');
  expect(addressOf(2, '127.0.0.1', forwarded)).toBe('198.51.100.1');
});

it('a client cannot choose its address by sending extra header entries', () => {
  const ipv4 = fc.ipV4();
  fc.assert(
    fc.property(
      fc.array(fc.oneof(ipv4, fc.string())),
      ipv4,
      fc.array(ipv4, { maxLength: 3 }),
      (forged, client, proxies) => {
        const forwarded = [...forged.map((entry) => entry.replaceAll(',', '')), client, ...proxies].join(', ');
        expect(addressOf(proxies.length + 1, '127.0.0.1', forwarded)).toBe(client);
      },
    ),
  );
});

it.each([undefined, '', 'unknown', '_hidden', '300.1.1.1', 'a,', '1.2.3.4:x'])(
  "the client address is the connection's address if the header entry is %j",
  (forwarded) => expect(addressOf(1, '192.0.2.9', forwarded)).toBe('192.0.2.9'),
);

it.each([
  ['192.0.2.1:4711', '192.0.2.1'],
  ['[2001:db8::1]:4711', '2001:db8:0:0::/64'],
  ['[2001:db8::1]', '2001:db8:0:0::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
])('the client address is read from %s', (entry, address) => expect(addressOf(1, '127.0.0.1', entry)).toBe(address));

it('the client address is empty after the connection is closed', () => expect(addressOf(0, undefined)).toBe(''));

it('toNetwork maps every address in an IPv6 network to this network', () => {
  fc.assert(
    fc.property(fc.ipV6(), (address) => {
      const network = toNetwork(address) ?? '';
      if (/^::ffff:[\d.]+$/i.test(address)) return expect(address.toLowerCase()).toBe(`::ffff:${network}`);
      const [start = '', bits] = network.split('/');
      expect([isIPv6(start), bits]).toEqual([true, '64']);
      const list = new BlockList();
      list.addSubnet(start, 64, 'ipv6');
      expect(list.check(address, 'ipv6')).toBe(true);
      expect(toNetwork(start)).toBe(network);
    }),
  );
});

it('toNetwork accepts scoped and mixed IPv6 notations', () => {
  expect(toNetwork('fe80::1%eth0')).toBe('fe80:0:0:0::/64');
  expect(toNetwork('64:ff9b::192.0.2.1')).toBe('64:ff9b:0:0::/64');
  expect(toNetwork('2001:0db8:0000:0000:0000:0000:0000:0001')).toBe(toNetwork('2001:DB8::1'));
});

it('toNetwork returns null for strings that are not addresses', () => {
  for (const text of ['', 'localhost', '1.2.3', '::1::', '12345::']) expect(toNetwork(text)).toBeNull();
});

it('request durations are labelled with the declared route, method and status, but not with path values', async () => {
  const metrics = createMetrics('test');
  const route: Route = {
    method: 'GET',
    path: '/v1/items/:id',
    hot: true,
    handle: (exchange) => exchange.answer(200, '1'),
  };
  const onAnswer = createRequestDurations(metrics);
  const { url } = await serve({ routes: [route], onAnswer });
  for (const path of ['/v1/items/a', '/v1/items/b%20c', '/v1/nothing']) await (await fetch(url + path)).text();
  const counts = (await metrics.text()).match(/(?<=^playline_http_request_duration_seconds_count).*$/gm);
  expect(counts).toEqual([
    '{service="test",route="/v1/items/:id",method="GET",status="200"} 2',
    '{service="test",route="unmatched",method="GET",status="404"} 1',
  ]);
});

const key = 'pk_svcapik-0123456789abcdefghijABCDEFGHIJ012345';

function openLog() {
  const lines: string[] = [];
  let callbacks: (() => void)[] = [];
  const logger = createLogger({ service: 'gateway', level: 'info' }, { write: (line: string) => lines.push(line) });
  const log = createFailureLog({ logger, afterInterval: (run) => callbacks.push(run) });
  const advanceInterval = () => {
    const due = callbacks;
    callbacks = [];
    for (const run of due) run();
  };
  const fail = (message: string, traceId = 'a'.repeat(32)) =>
    log({ traceId, route: '/v1/items' }, new PublicError('INTERNAL_SERVER_ERROR', { cause: new Error(message) }));
  return { lines, log, fail, advanceInterval, reported: () => lines.map((line) => JSON.parse(line)) };
}

it('the failure log reports the first fault of each type immediately, with its trace id and stack', () => {
  const { fail, reported } = openLog();
  fail('broker is down');
  expect(reported()).toMatchObject([{ level: 'error', msg: 'request failed', traceId: 'a'.repeat(32) }]);
  expect(reported()[0].error.stack).toContain('app.test.ts');
});

it('the failure log reports further faults of a type once per interval, with their count and the latest trace id', () => {
  const { fail, reported, advanceInterval } = openLog();
  for (let count = 0; count < 1000; count++)
    fail(`not acknowledged within ${count} ms`, String(count).padStart(32, '0'));
  expect(reported()).toHaveLength(1);
  advanceInterval();
  for (let count = 0; count < 5; count++) fail('not acknowledged within 7 ms');
  advanceInterval();
  const latest = { traceId: '999'.padStart(32, '0'), latest: 'not acknowledged within 999 ms' };
  expect(reported().slice(1)).toMatchObject([
    { msg: 'request failed repeatedly', failures: 999, ...latest },
    { failures: 5 },
  ]);
});

it('the failure log reports the next fault immediately after an interval without faults', () => {
  const { fail, reported, advanceInterval } = openLog();
  fail('broker is down');
  advanceInterval();
  fail('broker is down');
  expect(reported().map(({ msg }) => msg)).toEqual(['request failed', 'request failed']);
});

it('the failure log reports faults of different types separately', () => {
  const { fail, reported } = openLog();
  fail('broker is down');
  fail('the key store is down');
  expect(reported()).toHaveLength(2);
});

it('the failure log is bounded when every fault has a different message', () => {
  const { fail, reported, advanceInterval } = openLog();
  const toName = (count: number) => count.toString(2).replaceAll('0', 'a').replaceAll('1', 'b');
  for (let count = 0; count < 1000; count++) fail(`no leader for topic ${toName(count)}`);
  expect(reported()).toHaveLength(51);
  advanceInterval();
  expect(reported()).toHaveLength(52);
  expect(reported()[51]).toMatchObject({ failures: 949 });
});

it('the failure log contains no keys or passwords in first or later lines', () => {
  const { lines, fail, advanceInterval } = openLog();
  for (let count = 0; count < 3; count++) fail(`redis://:hunter2@store:1 refused ${key}`);
  advanceInterval();
  expect(lines).toHaveLength(2);
  expect(lines.join()).not.toContain('hunter2');
  expect(lines.join()).not.toContain(key);
});

it('the failure log contains thrown values that are not errors', () => {
  const { log, reported } = openLog();
  log({ traceId: 'b', route: '/' }, 'text');
  log({ traceId: 'b', route: '/' }, undefined);
  expect(reported()).toMatchObject([{ error: 'text' }, { msg: 'request failed' }]);
});

it('the failure log reports refusals by code and route without their message, which can quote the request', () => {
  const { log, lines, reported, advanceInterval } = openLog();
  const refuse = (traceId: string, route: string) =>
    log({ traceId, route }, new PublicError('VALIDATION_ERROR', { message: 'a value from the request' }));
  for (const traceId of ['a', 'b', 'c']) refuse(traceId, '/v1/items');
  refuse('d', 'unmatched');
  advanceInterval();
  const refusal = { level: 'info', route: '/v1/items', status: 400, code: 'VALIDATION_ERROR' };
  expect(reported()).toMatchObject([
    { ...refusal, msg: 'request refused', traceId: 'a' },
    { msg: 'request refused', route: 'unmatched', traceId: 'd' },
    { ...refusal, msg: 'request refused repeatedly', traceId: 'c', failures: 2 },
  ]);
  expect(lines.join()).not.toContain('a value from the request');
});

it('a refused request is logged with the trace id of its response', async () => {
  const logged: { traceId: string; route: string }[] = [];
  const handle = () => {
    throw new PublicError('TOO_MANY_REQUESTS_ERROR');
  };
  const { url } = await serve({
    routes: [{ method: 'GET', path: '/v1/refuse', handle }],
    onFailure: ({ traceId, route }) => logged.push({ traceId, route }),
  });
  const { headers } = await fetch(`${url}/v1/refuse`);
  expect(logged).toEqual([{ traceId: headers.get('x-trace-id'), route: '/v1/refuse' }]);
});
