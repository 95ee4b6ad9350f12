import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { ERRORS, type ErrorCode, PublicError } from '@playline/errors';
import { expect, onTestFinished } from 'vitest';
import { createHttpApp, type HttpAppOptions } from '../app.ts';
import { planJsonBody, readBody } from '../read-body.ts';
import { type HttpServerOptions, openHttpServer } from '../server.ts';

export const LIMIT = 1024 * 1024;

/** Serves an app on a free port until the end of the test. */
export async function serve(
  options: Partial<HttpAppOptions>,
  limits: Pick<HttpServerOptions, 'headersMaxMs' | 'connectionsMax'> = {},
) {
  const app = createHttpApp({ link: (code) => code, routes: [], ...options });
  const server = await openHttpServer({ app, host: '127.0.0.1', port: 0, ...limits });
  onTestFinished(server.close);
  return { server, port: server.port, url: `http://127.0.0.1:${server.port}` };
}

export async function open(bodyMaxMs = 10_000, headersMaxMs?: number) {
  const faults: unknown[] = [];
  const statuses: number[] = [];
  let reading = 0;
  const options: HttpAppOptions = {
    publishableKeyHeader: 'x-service-publishable-key',
    link: (code) => `https://docs.test/errors/${code}`,
    onAnswer: (_exchange, status) => statuses.push(status),
    onFailure: (_exchange, error) => {
      if (!(error instanceof PublicError) || error.status >= 500) faults.push(error);
    },
    routes: [
      {
        method: 'POST',
        path: '/v1/echo',
        hot: true,
        cors: true,
        handle: async (exchange) => {
          reading++;
          const read = readBody(exchange.request, planJsonBody(exchange.request, LIMIT), { bodyMaxMs });
          const body = await read.finally(() => reading--);
          exchange.answer(200, JSON.stringify({ bytes: body.length, text: body.toString().slice(0, 20) }));
        },
      },
      {
        method: 'POST',
        path: '/v1/refuse',
        handle: () => {
          throw new PublicError('TOO_MANY_REQUESTS_ERROR');
        },
      },
      {
        method: 'GET',
        path: '/v1/items/:id',
        handle: (exchange, { id }) => exchange.answer(200, JSON.stringify({ id })),
      },
      { method: 'GET', path: '/v1/same', handle: (exchange) => exchange.answerEmpty(304, ['etag', '"1"']) },
      {
        method: 'DELETE',
        path: '/v1/broken',
        handle: () => {
          throw new Error('password hunter2');
        },
      },
    ],
  };
  return { ...(await serve(options, { headersMaxMs })), faults, statuses, reading: () => reading };
}

export const json = { 'content-type': 'application/json' };
export const post = (url: string, body: RequestInit['body'], headers: Record<string, string> = json) =>
  fetch(`${url}/v1/echo`, { method: 'POST', body, headers });

export async function expectEnvelope(response: Response, code: ErrorCode, details: unknown = null): Promise<void> {
  expect(response.status).toBe(ERRORS[code].status);
  expect(response.headers.get('content-type')).toBe('application/json');
  const body = (await response.json()) as Record<string, unknown>;
  expect(body).toEqual({
    message: expect.any(String),
    link: `https://docs.test/errors/${code}`,
    trace_id: response.headers.get('x-trace-id'),
    code,
    details,
  });
  expect(body.trace_id).toMatch(/^[0-9a-f]{32}$/);
}

/** Sends bytes and half-closes the connection. @returns all bytes received until the server closes the connection */
export function sendRawAndEnd(port: number, bytes: string): Promise<string> {
  return text(connect({ port, host: '127.0.0.1', allowHalfOpen: true }).end(bytes, 'latin1'));
}

/** Sends bytes. @returns all bytes received until the connection closes */
export function sendRaw(port: number, ...chunks: (string | Buffer)[]): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  for (const chunk of chunks) socket.write(chunk);
  return text(socket);
}
