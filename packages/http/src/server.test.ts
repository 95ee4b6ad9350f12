import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect, createServer, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { createMetrics, VERSION } from '@playline/runtime';
import { until } from '@playline/testkit';
import { expect, it, onTestFinished } from 'vitest';
import { createHttpApp } from './app.ts';
import type { Exchange } from './exchange.ts';
import { type AdminServerOptions, answerBrokenRequest, openAdminServer, openHttpServer } from './server.ts';
import { serve } from './test/open-server.ts';

/** A server whose requests stay in flight until the test answers them. */
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
    request({ port, path: '/held', agent }, (answer) => {
      answer.resume();
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, connection: answer.headers.connection }));
    })
      .on('error', reject)
      .end();
  });
}

it('answers what is in flight, ends its connection and takes nothing new while it drains', async () => {
  const { server, inFlight } = await open();
  const agent = new Agent({ keepAlive: true });
  const answer = get(server.port, agent);
  await until('the request is in flight', () => inFlight.length === 1);
  expect(server.state).toBe('open');

  const closed = server.close();
  expect(server.state).toBe('draining');
  await expect(get(server.port, new Agent())).rejects.toThrow('ECONNREFUSED');
  inFlight[0]?.answer(200, '{}');
  expect(await answer).toEqual({ status: 200, connection: 'close' });
  await closed;
  expect(server.state).toBe('closed');
});

it('ends idle keep-alive connections, used and unused, when it closes', async () => {
  const { server, inFlight } = await open();
  const unused = connect(server.port, '127.0.0.1');
  const ended = new Promise((resolve) => unused.on('close', resolve));
  unused.resume();
  const answer = get(server.port, new Agent({ keepAlive: true }));
  await until('the request is in flight', () => inFlight.length === 1);
  inFlight[0]?.answer(200, '{}');
  expect((await answer).connection).toBe('keep-alive');
  await server.close();
  await ended;
  // Far below the bound after which a drain cuts whatever is left.
}, 5000);

it('closes once, however often it is called', async () => {
  const { server } = await open();
  await Promise.all([server.close(), server.close()]);
  expect(server.state).toBe('closed');
});

it('gives a whole request its own answer, although broken bytes follow it on the connection', async () => {
  const { server, inFlight } = await open();
  const socket = connect(server.port, '127.0.0.1', () => socket.write('GET /held HTTP/1.1\r\nhost: a\r\n\r\n'));
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk;
  });
  await until('the request is in flight', () => inFlight.length === 1);
  socket.write('\u0000 no request\r\n\r\n');
  await until('the broken bytes are read', () => inFlight[0]?.request.socket.bytesRead === socket.bytesWritten);
  inFlight[0]?.answer(200, '{"own":true}');
  await until('the answer is here', () => received !== '');
  expect(received).toMatch(/^HTTP\/1\.1 200 /);
  expect(received.match(/HTTP\/1\.1/g)).toHaveLength(1);
  socket.destroy();
});

it('answers a whole request whose caller has ended its half of the connection', async () => {
  const { server, inFlight } = await open();
  const socket = connect({ port: server.port, host: '127.0.0.1', allowHalfOpen: true });
  const received = text(socket);
  socket.end('GET /held HTTP/1.1\r\nhost: a\r\n\r\n');
  await until('the half-close is seen', () => inFlight[0]?.request.socket.readableEnded);
  inFlight[0]?.answer(200, '{"own":true}');
  expect(await received).toMatch(/^HTTP\/1\.1 200 .*\{"own":true\}$/s);
});

it('refuses to start on a port that is taken', async () => {
  const { server } = await open();
  const app = createHttpApp({ publishableKeyHeader: 'x-key', link: (code) => code, routes: [] });
  await expect(openHttpServer({ app, host: '127.0.0.1', port: server.port })).rejects.toThrow('EADDRINUSE');
});

it('ends answers without an end when it closes, and has sent what was written, without delay', async () => {
  const { server, inFlight } = await open();
  const answered = fetch(`http://127.0.0.1:${server.port}/held`);
  await until('the request is in flight', () => inFlight.length === 1);
  const stream = inFlight[0]!.openStream('text/event-stream');
  stream?.write('data: 1\n\n');
  const answer = await answered;
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  expect((await reader.read()).value).toBe('data: 1\n\n');
  expect(inFlight[0]!.openStream('text/event-stream')).toBeNull();
  await server.close();
  expect((await reader.read()).done).toBe(true);
}, 5000);

it.each(['before', 'after'])(
  'ends an answer without an end when its reader ends its side %s it begins, though nothing is written',
  async (when) => {
    const { server, inFlight } = await open();
    const reader = connect({ port: server.port, host: '127.0.0.1', allowHalfOpen: true });
    reader.write('GET /held HTTP/1.1\r\nhost: x\r\n\r\n');
    await until('the request is in flight', () => inFlight.length === 1);
    const { socket } = inFlight[0]!.request;
    const begin = () => inFlight[0]!.openStream('text/event-stream');
    const early = when === 'after' ? begin() : null;
    reader.end();
    await until('the end is seen', () => socket.readableEnded);
    const stream = early ?? begin();
    await until('the answer is over', () => stream?.destroyed);
    reader.destroy();
    await server.close();
  },
  5000,
);

it('broken bytes get one answer, which the caller can still read, in however many pieces they come', async () => {
  const statuses: number[] = [];
  const app = createHttpApp({
    publishableKeyHeader: 'x-service-publishable-key',
    link: (code) => code,
    onAnswer: (_exchange, status) => statuses.push(status),
    routes: [],
  });
  let atServer: Socket | undefined;
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    atServer = socket;
    for (let piece = 0; piece < 30; piece++) answerBrokenRequest(app, new Error('no HTTP'), socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as { port: number };
  expect(await text(connect(port, '127.0.0.1'))).toMatch(/^HTTP\/1\.1 400 /);
  expect([statuses, atServer?.destroyed]).toEqual([[400], false]);
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
    const answer = await fetch(`${url}/readyz`);
    return [answer.status, await answer.json()];
  };
  return { url, readyz };
}

const READY = { ready: true, version: VERSION, notReady: [] };
const notReady = (...names: string[]) => ({ ready: false, version: VERSION, notReady: names });

it('openAdminServer is alive although nothing is ready', async () => {
  const { url } = await openAdmin(() => false);
  expect((await fetch(`${url}/livez`)).status).toBe(200);
});

it('openAdminServer gives the reason why a store cannot be used while it is not ready, and none once it is', async () => {
  let isReady = false;
  const reasons = { Kafka: 'Kafka does not answer' };
  const ready = () => ({ broker: isReady });
  const { readyz } = await openAdmin(ready, () => reasons);
  expect(await readyz()).toEqual([503, { ...notReady('broker'), reasons }]);
  isReady = true;
  expect(await readyz()).toEqual([200, READY]);
});

it('openAdminServer stays ready without what it can do without, and names it with the reason', async () => {
  let isWhole = false;
  const reasons = { Redis: 'Redis takes no writes (OOM)' };
  const degraded = { consents: () => isWhole };
  const ready = () => true;
  const { readyz } = await openAdmin(ready, () => reasons, degraded);
  expect(await readyz()).toEqual([200, { ...READY, degraded: ['consents'], reasons }]);
  isWhole = true;
  expect(await readyz()).toEqual([200, READY]);
});

it('openAdminServer is not ready when the check throws or never answers', async () => {
  const throwing = await openAdmin(() => Promise.reject(new Error('internal text')));
  const hanging = await openAdmin(() => new Promise(() => {}));
  for (const { readyz } of [throwing, hanging]) expect(await readyz()).toEqual([503, notReady('service')]);
});

it('openAdminServer names the check that never answers, and the one that throws, among those that pass', async () => {
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
  const fine = await openAdmin({ consumer: () => true, broker: async () => true });
  expect(await fine.readyz()).toEqual([200, READY]);
});

it('openAdminServer gives the metrics as Prometheus text', async () => {
  const { url } = await openAdmin(() => true);
  expect(await (await fetch(`${url}/metrics`)).text()).toContain('seen_total{service="test"} 2');
});

it('openAdminServer answers 404 for anything else', async () => {
  const { url } = await openAdmin(() => true);
  expect((await fetch(`${url}/`)).status).toBe(404);
  expect((await fetch(`${url}/livez`, { method: 'POST' })).status).toBe(404);
});
