import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { until } from '@playline/testkit';
import { expect, it, onTestFinished } from 'vitest';
import type { Route } from './app.ts';
import type { Exchange } from './exchange.ts';
import { planJsonBody, readBody, useBody } from './read-body.ts';
import { serve } from './test/open-server.ts';

const LIMIT = 1024 * 1024;
const TYPE = 'content-type: application/json\r\n';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

function memoryUsed(): number {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Starts a server that counts the body bytes it reads. The route `/none` reads no body and never responds. */
async function open(connectionsMax?: number) {
  const received = { bytes: 0, requests: [] as Exchange[] };
  const read = (name: string, reader: (exchange: Exchange, onBytes: (bytes: number) => void) => Promise<unknown>) => {
    const handle = async (exchange: Exchange) => {
      let before = 0;
      await reader(exchange, (bytes) => {
        received.bytes += bytes - before;
        before = bytes;
      });
      exchange.answerEmpty(204);
    };
    return { method: 'POST', path: `/${name}`, hot: true, handle } as const;
  };
  const routes: Route[] = [
    read('read', ({ request }, onBytes) => readBody(request, planJsonBody(request, LIMIT), { onBytes })),
    read('use', ({ request }, onBytes) => useBody(request, planJsonBody(request, LIMIT), { onBytes, use: () => null })),
    { method: 'POST', path: '/none', hot: true, handle: (exchange) => void received.requests.push(exchange) },
  ];
  const { port } = await serve({ routes }, connectionsMax === undefined ? {} : { connectionsMax });
  const closed: string[] = [];
  const connectAs = async (name: string, request: string) => {
    const socket = openSocket(port).on('close', () => closed.push(name));
    await once(socket, 'connect');
    if (request !== '') await new Promise((resolve) => socket.write(request, resolve));
    return socket;
  };
  return { port, received, closed, connectAs };
}

/** Connects, and resets the connection after the test, because the server would wait on a half-closed connection. */
function openSocket(port: number): Socket {
  const socket = connect(port, '127.0.0.1').on('error', () => {});
  onTestFinished(() => void socket.resetAndDestroy());
  return socket;
}

const head = (path: string) =>
  `POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`;
const chunk = (bytes: number) => `${bytes.toString(16)}\r\n${'x'.repeat(bytes)}\r\n`;

/** Sends the same chunks repeatedly. Waits for each write, so that the sender buffers nothing. */
async function send(socket: Socket, chunks: Buffer, times: number): Promise<void> {
  for (let time = 0; time < times; time++) await new Promise<void>((resolve) => socket.write(chunks, () => resolve()));
}

it.each([
  ['read', 'one byte', chunk(1).repeat(1000), 1000],
  ['use', 'one byte', chunk(1).repeat(1000), 1000],
  ['use', '100 bytes', chunk(100).repeat(10), 1000],
  ['use', '1024 bytes and one byte alternately', (chunk(1024) + chunk(1)).repeat(10), 10_250],
])(
  'a body received by %s in chunks of %s uses at most twice its size',
  async (path, _name, text, size) => {
    const { port, received } = await open();
    const chunks = Buffer.from(text);
    const times = Math.floor((100 * 1024) / size);
    const sockets = Array.from({ length: 3 }, () => openSocket(port));
    for (const socket of sockets) socket.write(head(`/${path}`));
    await Promise.all(sockets.map((socket) => send(socket, chunks, 1)));
    const before = memoryUsed() - received.bytes;
    await Promise.all(sockets.map((socket) => send(socket, chunks, times)));
    await until('all chunks are received', () => received.bytes === 3 * size * (times + 1), 20_000);
    // The process itself allocates far less during the test than the 200 bytes of overhead per one-byte Buffer.
    expect(memoryUsed() - before).toBeLessThan(2 * received.bytes + 256 * 1024);
  },
  30_000,
);

it("a body that no handler reads uses little more memory than Node's buffer, even in one-byte chunks", async () => {
  const { port, received } = await open();
  const chunks = Buffer.from(chunk(1).repeat(1000));
  const before = memoryUsed();
  for (let caller = 0; caller < 3; caller++) {
    const socket = openSocket(port);
    socket.write(head('/none'));
    for (let time = 0; time < 200; time++) socket.write(chunks);
  }
  const isFull = ({ request }: Exchange) => request.readableLength >= 60_000;
  await until('the buffers are full', () => received.requests.length === 3 && received.requests.every(isFull), 20_000);
  expect((memoryUsed() - before) / 3).toBeLessThan(1024 * 1024);
}, 30_000);

it('at the connection limit, a new connection replaces only an idle connection', async () => {
  const { received, closed, connectAs } = await open(10);
  const busy = 'POST /none HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n';
  for (let at = 0; at < 5; at++) await connectAs('busy', busy);
  await until('the requests are received', () => received.requests.length === 5);
  for (let at = 0; at < 5; at++) await connectAs(`idle ${at}`, '');
  await connectAs('busy', busy);
  await until('the new request is received', () => received.requests.length === 6);
  await until('an idle connection is closed', () => closed.length > 0);
  expect(closed).toEqual(['idle 0']);
  for (let at = 1; at < 5; at++) {
    await connectAs('busy', busy);
    await until('the new request is received', () => received.requests.length === 6 + at);
  }
  await connectAs('too many', busy);
  await until('the connection is closed', () => closed.includes('too many'));
  expect(closed.sort()).toEqual(['idle 0', 'idle 1', 'idle 2', 'idle 3', 'idle 4', 'too many']);
}, 30_000);

it('at the connection limit, a connection with an incomplete body is replaced if none is idle', async () => {
  const { received, closed, connectAs } = await open(4);
  const post = (path: string, bytes: number) =>
    `POST /${path} HTTP/1.1\r\nhost: a\r\n${TYPE}content-length: ${bytes}\r\n\r\n`;
  await connectAs('whole', post('none', 0));
  await until('the request is received', () => received.requests.length === 1);
  for (let at = 1; at < 4; at++) {
    await connectAs(`slow ${at}`, `${post('read', 10)}1`);
    await until('the body is being received', () => received.bytes === at);
  }
  await connectAs('new', post('none', 0));
  await until('the request is received', () => received.requests.length === 2);
  await until('a connection is closed', () => closed.length > 0);
  expect(closed).toEqual(['slow 1']);
}, 30_000);

it('at the connection limit, connections with incomplete requests are replaced, oldest first', async () => {
  const { received, closed, connectAs } = await open(4);
  for (let at = 0; at < 4; at++) await connectAs(`unfinished ${at}`, 'POST /none HTTP/1.1\r\n');
  const last = await connectAs('new', '');
  await connectAs('unfinished 4', 'POST /none HTTP/1.1\r\n');
  await until('two connections are closed', () => closed.length === 2);
  expect(closed.sort()).toEqual(['unfinished 0', 'unfinished 1']);
  last.write('POST /none HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n');
  await until('the request is received', () => received.requests.length === 1);
}, 30_000);
