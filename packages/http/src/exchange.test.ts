import { connect, type Socket } from 'node:net';
import { until } from '@playline/testkit';
import { codePoint } from '@playline/testkit/code-point';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { corsHeaders, type Exchange, parseQuery, restrictOrigin, singleValueOf } from './exchange.ts';
import { serve } from './test/open-server.ts';

/** More than the kernel buffers at both ends of a connection. */
const LARGE_BYTES = 24 << 20;
const large = JSON.stringify('x'.repeat(LARGE_BYTES));

async function openWithCaller(answerMaxMs?: number) {
  const inFlight: Exchange[] = [];
  const statuses: number[] = [];
  const { port } = await serve({
    publishableKeyHeader: 'x-key',
    answerMaxMs,
    onAnswer: (_exchange, status) => statuses.push(status),
    routes: [{ method: 'GET', path: '/held', hot: true, handle: (exchange) => void inFlight.push(exchange) }],
  });
  const caller = connect(port, '127.0.0.1');
  caller.on('error', () => {});
  caller.write('GET /held HTTP/1.1\r\nhost: a\r\n\r\n');
  await until('the request is in flight', () => inFlight.length === 1);
  return { caller, exchange: inFlight[0] as Exchange, inFlight, statuses };
}

async function readAll(caller: Socket, bytes: number): Promise<void> {
  let read = 0;
  caller.on('data', (chunk) => {
    read += chunk.length;
  });
  await until('the response is read', () => read > bytes);
}

it('no response is counted if the caller has closed its connection', async () => {
  const { caller, exchange, statuses } = await openWithCaller();
  // A half-close would only mean that the caller sends no further requests.
  caller.resetAndDestroy();
  await new Promise((resolve) => exchange.request.socket.once('close', resolve));
  exchange.answer(200, '{}');
  exchange.fail(new Error('too late'));
  expect(statuses).toEqual([]);
  expect(exchange.answered).toBe(true);
});

it('a connection is closed if its response is not read in time', async () => {
  const { exchange, statuses } = await openWithCaller(50);
  exchange.answer(200, large);
  await until('the connection is closed', () => exchange.request.socket.destroyed);
  expect(statuses).toEqual([200]);
});

it('a response queued behind an unread response ends when the connection closes', async () => {
  const { caller, exchange, inFlight } = await openWithCaller(50);
  caller.write('GET /held HTTP/1.1\r\nhost: a\r\n\r\n');
  await until('both requests are in flight', () => inFlight.length === 2);
  inFlight[1]?.answer(200, large);
  await until('the connection is closed', () => exchange.request.socket.destroyed);
});

it('a connection stays open after its response is fully read', async () => {
  const { caller, exchange, inFlight } = await openWithCaller(20_000);
  exchange.answer(200, large);
  await readAll(caller, LARGE_BYTES);
  caller.write('GET /held HTTP/1.1\r\nhost: a\r\n\r\n');
  await until('the next request is in flight', () => inFlight.length === 2);
  inFlight[1]?.answer(200, '{}');
  expect(exchange.request.socket.destroyed).toBe(false);
  caller.destroy();
});

const text = fc.string({ unit: codePoint });

it('parseQuery returns all parameters encoded by URLSearchParams or encodeURIComponent, in order', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(text, text)), (pairs) => {
      const expected = new Map<string, string[]>();
      for (const [name, value] of pairs) expected.set(name, [...(expected.get(name) ?? []), value]);
      const encoded = pairs
        .map((pair) => pair.map(encodeURIComponent).join('='))
        .filter((parameter) => parameter !== '=');
      if (!expected.has('')) expect(parseQuery(`/path?${encoded.join('&')}`)).toEqual(expected);
      expect(parseQuery(`/path?${new URLSearchParams(pairs)}`)).toEqual(expected);
    }),
  );
});

it('parseQuery returns parameters or throws a VALIDATION_ERROR for every query string', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('%', 'f', '8', 'c', '=', '&', '+', 'é', '?', ' ') }), (query) => {
      try {
        for (const [name, values] of parseQuery(`?${query}`)) {
          expect(name.isWellFormed()).toBe(true);
          for (const value of values) expect(value).not.toContain('\ufffd');
        }
      } catch (error) {
        expect(error).toMatchObject({ code: 'VALIDATION_ERROR' });
      }
    }),
  );
});

it('parseQuery treats names such as __proto__ as ordinary parameters', () => {
  expect(singleValueOf(parseQuery('?__proto__=a&constructor=b'), 'anonymousId')).toBeUndefined();
  expect(singleValueOf(parseQuery('?__proto__=a'), '__proto__')).toBe('a');
});

it('restrictOrigin can be applied twice, and the second origin replaces the first', () => {
  const { response } = corsHeaders('x-key');
  const once = restrictOrigin(response, 'https://game.example');
  expect(restrictOrigin(once, 'https://game.example')).toEqual(once);
  expect(restrictOrigin(once, null)).toEqual(restrictOrigin(response, null));
});
