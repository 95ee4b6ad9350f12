import { connect, type Socket } from 'node:net';
import { createMetrics } from '@playline/runtime';
import { until } from '@playline/testkit';
import fc from 'fast-check';
import { expect, it, onTestFinished } from 'vitest';
import type { Route } from './app.ts';
import type { Exchange } from './exchange.ts';
import { planJsonBody, readBody } from './read-body.ts';
import { openAdminServer } from './server.ts';
import { serve } from './test/open-server.ts';

const GET = 'GET /held HTTP/1.1\r\nhost: a\r\n\r\n';

async function open() {
  const waiting: Exchange[] = [];
  const routes: Route[] = [
    { method: 'GET', path: '/held', hot: true, handle: (exchange) => void waiting.push(exchange) },
    { method: 'GET', path: '/large', hot: true, handle: (exchange) => exchange.answer(200, LARGE) },
    { method: 'GET', path: '/small', hot: true, handle: (exchange) => exchange.answer(200, '{}') },
    {
      method: 'POST',
      path: '/echo',
      hot: true,
      handle: async (exchange) => {
        const body = await readBody(exchange.request, planJsonBody(exchange.request, 1024 * 1024));
        // Delays some responses, so that they are not ready in request order.
        for (let delay = body.length % 4; delay > 0; delay--) await new Promise(setImmediate);
        exchange.answer(200, JSON.stringify(body.toString()));
      },
    },
  ];
  const count = { responses: 0 };
  return { ...(await serve({ routes, onAnswer: () => count.responses++ })), waiting, count };
}

const LARGE = JSON.stringify('x'.repeat(64 * 1024));

function openSocket(port: number): Socket {
  const socket = connect(port, '127.0.0.1').on('error', () => {});
  onTestFinished(() => void socket.destroy());
  return socket;
}

async function untilParsed(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
}

it('a connection has at most four pending requests, and each response admits the next request', async () => {
  const { port, waiting } = await open();
  const socket = openSocket(port);
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk;
  });
  socket.write(GET.repeat(200));
  await until('requests are parsed', () => waiting.length >= 4);
  for (let responded = 0; responded < 200; responded++) {
    await until('the next request is parsed', () => waiting.length > responded);
    if (responded % 100 === 0) await untilParsed();
    expect(waiting.length - responded).toBeLessThanOrEqual(4);
    waiting[responded]?.answer(200, String(responded));
  }
  await until('all responses are received', () => text.match(/HTTP/g)?.length === 200);
  expect([...text.matchAll(/\r\n\r\n(\d+)/g)].map(([, body]) => Number(body))).toEqual([...Array(200).keys()]);
}, 60_000);

it('the requests on a connection with unread responses are processed after the responses are read', async () => {
  const { port } = await open();
  const socket = openSocket(port);
  socket.pause();
  socket.write(GET.replace('/held', '/large').repeat(200));
  const other = openSocket(port);
  let responses = 0;
  other.on('data', () => other.write(GET.replace('/held', '/small'), () => responses++));
  other.write(GET.replace('/held', '/small'));
  await until('another caller is served', () => responses > 20);
  let bytes = 0;
  socket.on('data', (chunk) => {
    bytes += chunk.length;
  });
  socket.resume();
  await until('all responses are read', () => bytes > 200 * LARGE.length);
}, 60_000);

it('forty connections that pipeline requests without reading responses do not delay another caller', async () => {
  const { port, count } = await open();
  for (let attackers = 0; attackers < 40; attackers++) {
    const attacker = openSocket(port);
    attacker.pause();
    attacker.write('GET /none HTTP/1.1\r\n\r\n'.repeat(2000));
  }
  const other = openSocket(port);
  const waits: number[] = [];
  for (let request = 0; request < 50; request++) {
    const before = count.responses;
    const responded = new Promise((resolve) => other.once('data', resolve));
    other.write(GET.replace('/held', '/small'));
    await responded;
    waits.push(count.responses - before);
  }
  // The attackers connect during the first requests.
  expect(Math.max(...waits.slice(5))).toBeLessThan(300);
}, 60_000);

it('the admin listener has at most four pending requests per connection', async () => {
  let probes = 0;
  const ready = () => {
    probes++;
    return new Promise<boolean>(() => {});
  };
  const admin = await openAdminServer({ host: '127.0.0.1', port: 0, ready, metrics: createMetrics('test') });
  onTestFinished(admin.close);
  openSocket(admin.port).write('GET /readyz HTTP/1.1\r\nhost: a\r\n\r\n'.repeat(100));
  await until('probes are called', () => probes > 0);
  await untilParsed();
  expect(probes).toBe(4);
});

it('pipelined requests get their responses in order for all bodies and packet boundaries', async () => {
  const { port } = await open();
  const body = fc.string({ unit: fc.constantFrom('a', '\r\n', '\r\n\r\n', '0', '{}'), maxLength: 40 });
  const request = fc.record({ body, chunked: fc.boolean() });
  const toBytes = ({ body: text, chunked }: { body: string; chunked: boolean }, at: number) => {
    const content = `${at} ${text}`;
    const head = `POST /echo HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n`;
    const size = content.length.toString(16);
    return chunked
      ? `${head}transfer-encoding: chunked\r\n\r\n${size}\r\n${content}\r\n0\r\n\r\n`
      : `${head}content-length: ${content.length}\r\n\r\n${content}`;
  };
  await fc.assert(
    fc.asyncProperty(fc.array(request, { minLength: 1, maxLength: 60 }), fc.array(fc.nat(400)), async (sent, cuts) => {
      const bytes = sent.map(toBytes).join('');
      const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
      let text = '';
      socket.on('data', (chunk) => {
        text += chunk;
      });
      const ended = new Promise((resolve) => socket.once('end', resolve));
      let at = 0;
      for (const cut of cuts) {
        socket.write(bytes.slice(at, at + cut));
        at += cut;
        await new Promise(setImmediate);
      }
      socket.end(bytes.slice(at));
      await ended;
      const responses = [...text.matchAll(/HTTP\/1\.1 200 [^"]*("(?:[^"\\]|\\.)*")/g)];
      expect(responses.map(([, json]) => JSON.parse(json as string))).toEqual(
        sent.map(({ body: text }, index) => `${index} ${text}`),
      );
    }),
    { numRuns: 50 },
  );
}, 120_000);
