import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect, createServer, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { createMetrics, VERSION } from '@playline/runtime';
import { until } from '@playline/testkit';
import { expect, it, onTestFinished } from 'vitest';
import { createHttpApp } from './app.ts';
import type { Exchange } from './exchange.ts';
import { type AdminServerOptions, openAdminServer, openHttpServer, respondToMalformedRequest } from './server.ts';
import { serve } from './test/open-server.ts';

async function open() {
  const inFlight: Exchange[] = [];
  const { server } = await serve({
    publishableKeyHeader: 'x-key',
    routes: [{ method: 'GET', path: '/held', hot: true, handle: (exchange) => void inFlight.push(exchange) }],
  });
  return { server, inFlight };
}

function get(port: number, agent: Agent): Promise<{ status: number; connection: string | undefined }> {
  return new Promise((resolve, reject) => {
    request({ port, path: '/held', agent }, (response) => {
      response.resume();
      response.on('end', () => resolve({ status: response.statusCode ?? 0, connection: response.headers.connection }));
    })
      .on('error', reject)
      .end();
  });
}

it('a draining server responds to requests in flight, then closes their connections', async () => {
  const { server, inFlight } = await open();
  const agent = new Agent({ keepAlive: true });
  const response = get(server.port, agent);
  await until('the request is in flight', () => inFlight.length === 1);
  expect(server.state).toBe('open');

  const closed = server.close();
  expect(server.state).toBe('draining');
  await expect(get(server.port, new Agent())).rejects.toThrow('ECONNREFUSED');
  inFlight[0]?.answer(200, '{}');
  expect(await response).toEqual({ status: 200, connection: 'close' });
  await closed;
  expect(server.state).toBe('closed');
});

it('a closing server closes idle keep-alive connections, both used and unused', async () => {
  const { server, inFlight } = await open();
  const unused = connect(server.port, '127.0.0.1');
  const ended = new Promise((resolve) => unused.on('close', resolve));
  unused.resume();
  const response = get(server.port, new Agent({ keepAlive: true }));
  await until('the request is in flight', () => inFlight.length === 1);
  inFlight[0]?.answer(200, '{}');
  expect((await response).connection).toBe('keep-alive');
  await server.close();
  await ended;
  // Far less than the time after which a drain closes all remaining connections.
}, 5000);

it('a server can be closed twice', async () => {
  const { server } = await open();
  await Promise.all([server.close(), server.close()]);
  expect(server.state).toBe('closed');
});

it('a complete request gets its response if malformed bytes follow on the connection', async () => {
  const { server, inFlight } = await open();
  const socket = connect(server.port, '127.0.0.1', () => socket.write('GET /held HTTP/1.1\r\nhost: a\r\n\r\n'));
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk;
  });
  await until('the request is in flight', () => inFlight.length === 1);
  socket.write('\u0000 not a request\r\n\r\n');
  await until('the malformed bytes are read', () => inFlight[0]?.request.socket.bytesRead === socket.bytesWritten);
  inFlight[0]?.answer(200, '{"done":true}');
  await until('the response has arrived', () => received !== '');
  expect(received).toMatch(/^HTTP\/1\.1 200 /);
  expect(received.match(/HTTP\/1\.1/g)).toHaveLength(1);
  socket.destroy();
});

it('a complete request gets its response if the caller has half-closed the connection', async () => {
  const { server, inFlight } = await open();
  const socket = connect({ port: server.port, host: '127.0.0.1', allowHalfOpen: true });
  const received = text(socket);
  socket.end('GET /held HTTP/1.1\r\nhost: a\r\n\r\n');
  await until('the half-close is received', () => inFlight[0]?.request.socket.readableEnded);
  inFlight[0]?.answer(200, '{"done":true}');
  expect(await received).toMatch(/^HTTP\/1\.1 200 .*\{"done":true\}$/s);
});

it('openHttpServer throws if the port is in use', async () => {
  const { server } = await open();
  const app = createHttpApp({ publishableKeyHeader: 'x-key', link: (code) => code, routes: [] });
  await expect(openHttpServer({ app, host: '127.0.0.1', port: server.port })).rejects.toThrow('EADDRINUSE');
});

it('a closing server ends response streams immediately after sending the written data', async () => {
  const { server, inFlight } = await open();
  const responding = fetch(`http://127.0.0.1:${server.port}/held`);
  await until('the request is in flight', () => inFlight.length === 1);
  const stream = inFlight[0]!.openStream('text/event-stream');
  stream?.write('data: 1\n\n');
  const response = await responding;
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  expect((await reader.read()).value).toBe('data: 1\n\n');
  expect(inFlight[0]!.openStream('text/event-stream')).toBeNull();
  await server.close();
  expect((await reader.read()).done).toBe(true);
}, 5000);

it.each(['before', 'after'])(
  'a response stream ends if the reader half-closes the connection %s its start',
  async (when) => {
    const { server, inFlight } = await open();
    const reader = connect({ port: server.port, host: '127.0.0.1', allowHalfOpen: true });
    reader.write('GET /held HTTP/1.1\r\nhost: x\r\n\r\n');
    await until('the request is in flight', () => inFlight.length === 1);
    const { socket } = inFlight[0]!.request;
    const begin = () => inFlight[0]!.openStream('text/event-stream');
    const early = when === 'after' ? begin() : null;
    reader.end();
    await until('the half-close is received', () => socket.readableEnded);
    const stream = early ?? begin();
    await until('the response has ended', () => stream?.destroyed);
    reader.destroy();
    await server.close();
  },
  5000,
);

it('malformed bytes that arrive in several chunks get one readable response', async () => {
  const statuses: number[] = [];
  const app = createHttpApp({
    publishableKeyHeader: 'x-service-publishable-key',
    link: (code) => code,
    onAnswer: (_exchange, status) => statuses.push(status),
    routes: [],
  });
  let serverSocket: Socket | undefined;
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    serverSocket = socket;
    for (let chunk = 0; chunk < 30; chunk++) respondToMalformedRequest(app, new Error('not HTTP'), socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as { port: number };
  expect(await text(connect(port, '127.0.0.1'))).toMatch(/^HTTP\/1\.1 400 /);
  expect([statuses, serverSocket?.destroyed]).toEqual([[400], false]);
});

async function openAdmin(
  ready: AdminServerOptions['ready'],
  reasons?: AdminServerOptions['reasons'],
  degraded?: AdminServerOptions['degraded'],
) {
  const metrics = createMetrics('test');
  metrics.counter('seen_total', 'seen').inc(2);
  const server = await openAdminServer({ host: '127.0.0.1', port: 0, ready, reasons, degraded, metrics });
  onTestFinished(() => server.close());
  const url = `http://127.0.0.1:${server.port}`;
  const readyz = async () => {
    const response = await fetch(`${url}/readyz`);
    return [response.status, await response.json()];
  };
  return { url, readyz };
}

const READY = { ready: true, version: VERSION, notReady: [] };
const notReady = (...names: string[]) => ({ ready: false, version: VERSION, notReady: names });

it('openAdminServer reports liveness while no check is ready', async () => {
  const { url } = await openAdmin(() => false);
  expect((await fetch(`${url}/livez`)).status).toBe(200);
});

it('openAdminServer reports the reason only while a store is not ready', async () => {
  let isReady = false;
  const reasons = { Kafka: 'Kafka does not respond' };
  const ready = () => ({ broker: isReady });
  const { readyz } = await openAdmin(ready, () => reasons);
  expect(await readyz()).toEqual([503, { ...notReady('broker'), reasons }]);
  isReady = true;
  expect(await readyz()).toEqual([200, READY]);
});

it('openAdminServer stays ready when a degraded check fails, and reports this check and its reason', async () => {
  let isHealthy = false;
  const reasons = { Redis: 'Redis rejects writes (OOM)' };
  const degraded = { consents: () => isHealthy };
  const ready = () => true;
  const { readyz } = await openAdmin(ready, () => reasons, degraded);
  expect(await readyz()).toEqual([200, { ...READY, degraded: ['consents'], reasons }]);
  isHealthy = true;
  expect(await readyz()).toEqual([200, READY]);
});

it('openAdminServer is not ready if its single check throws or hangs', async () => {
  const throwing = await openAdmin(() => Promise.reject(new Error('internal text')));
  const hanging = await openAdmin(() => new Promise(() => {}));
  for (const { readyz } of [throwing, hanging]) expect(await readyz()).toEqual([503, notReady('service')]);
});

it('openAdminServer lists the checks that hang, throw or fail', async () => {
  const { readyz } = await openAdmin({
    consumer: () => true,
    store: () => new Promise(() => {}),
    broker: async () => true,
    keys: () => {
      throw new Error('internal text');
    },
    schemas: async () => false,
  });
  expect(await readyz()).toEqual([503, notReady('store', 'keys', 'schemas')]);
  const healthy = await openAdmin({ consumer: () => true, broker: async () => true });
  expect(await healthy.readyz()).toEqual([200, READY]);
});

it('openAdminServer returns metrics in the Prometheus text format', async () => {
  const { url } = await openAdmin(() => true);
  expect(await (await fetch(`${url}/metrics`)).text()).toContain('seen_total{service="test"} 2');
});

it('openAdminServer returns 404 for other paths and methods', async () => {
  const { url } = await openAdmin(() => true);
  expect((await fetch(`${url}/`)).status).toBe(404);
  expect((await fetch(`${url}/livez`, { method: 'POST' })).status).toBe(404);
});

it('openAdminServer exposes every check as a metric', async () => {
  const ready = { broker: () => true, store: () => new Promise<boolean>(() => {}) };
  const { url } = await openAdmin(ready, undefined, { minting: () => false });
  const text = await (await fetch(`${url}/metrics`)).text();
  expect(text.match(/^playline_(ready|degraded){.*$/gm)).toEqual([
    'playline_ready{check="broker",service="test"} 1',
    'playline_ready{check="store",service="test"} 0',
    'playline_degraded{check="minting",service="test"} 1',
  ]);
});
