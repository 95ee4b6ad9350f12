import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { createDelivery } from './delivery.ts';
import { type HttpClient, openHttpClient } from './http-client.ts';

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

/** A service that answers the n-th request by the n-th of `answers`, and later ones by the last. */
async function serve(answers: readonly ((response: ServerResponse, request: IncomingMessage) => void)[]) {
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      bodies.push(body);
      answers[Math.min(bodies.length, answers.length) - 1]!(response, request);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const client: HttpClient = openHttpClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  closers.push(
    () => client.close(),
    () => server.close(),
  );
  return { bodies, client };
}

const answer =
  (status: number, headers: Record<string, string> = {}) =>
  (response: ServerResponse) =>
    void response.writeHead(status, headers).end('{}');
const request = { method: 'POST', path: '/', headers: {}, body: Buffer.from('batch') } as const;
const fast = { pauseFirstMs: 1, pauseMaxMs: 2, answerMaxMs: 200 };

describe('createDelivery', () => {
  it('repeats the same bytes after a 5xx until they are answered, and marks them as possibly stored twice', async () => {
    const { bodies, client } = await serve([answer(500), answer(503), answer(200)]);
    const delivered = await createDelivery({ client, ...fast })(request);
    expect(delivered).toMatchObject({ kind: 'answered', tries: 3, doubtful: true, answer: { status: 200 } });
    expect(bodies).toEqual(['batch', 'batch', 'batch']);
  });

  it.each([200, 400, 401, 404, 413])('treats %i as final', async (status) => {
    const { bodies, client } = await serve([answer(status), answer(200)]);
    const delivered = await createDelivery({ client, ...fast })(request);
    expect(delivered).toMatchObject({ kind: 'answered', tries: 1, doubtful: false, answer: { status } });
    expect(bodies).toHaveLength(1);
  });

  it('waits after a 429 as long as Retry-After says, and knows that nothing was stored', async () => {
    const { client } = await serve([answer(429, { 'retry-after': '7' }), answer(200)]);
    const pauses: number[] = [];
    const pause = async (ms: number) => void pauses.push(ms);
    const delivered = await createDelivery({ client, ...fast, pause })(request);
    expect(pauses).toEqual([7000]);
    expect(delivered).toMatchObject({ kind: 'answered', tries: 2, doubtful: false });
  });

  it('repeats after a reset connection and after silence', async () => {
    const silence = () => {};
    const { client } = await serve([(response) => void response.destroy(), silence, answer(200)]);
    expect(await createDelivery({ client, ...fast })(request)).toMatchObject({
      kind: 'answered',
      tries: 3,
      doubtful: true,
    });
  });

  it('gives up after a bounded time and says why', async () => {
    const { client } = await serve([answer(500)]);
    const reasons: string[] = [];
    const deliver = createDelivery({ client, ...fast, totalMaxMs: 50, onRetry: (reason) => reasons.push(reason) });
    expect(await deliver(request)).toMatchObject({ kind: 'given up', reason: 'status 500' });
    expect(reasons.length).toBeGreaterThan(1);
  });
});
