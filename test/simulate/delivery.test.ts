import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { createDelivery, createLanes, type HttpClient, openHttpClient } from './delivery.ts';

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

describe('createLanes', () => {
  it('runs the tasks of a lane in order, and never more at once than allowed', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat(4), { maxLength: 60 }),
        fc.integer({ min: 1, max: 5 }),
        async (plan, tasksMax) => {
          const lanes = createLanes(tasksMax);
          const ended: number[][] = [[], [], [], [], []];
          let most = 0;
          for (const [place, lane] of plan.entries()) {
            await lanes.start(lane, async () => {
              most = Math.max(most, lanes.running);
              // With different numbers of turns, lanes overtake each other.
              for (let turn = 0; turn < place % 4; turn++) await Promise.resolve();
              ended[lane]!.push(place);
            });
          }
          await lanes.drained();
          expect(most).toBeLessThanOrEqual(tasksMax);
          for (const [lane, places] of ended.entries()) {
            expect(places).toEqual([...plan.keys()].filter((place) => plan[place] === lane));
          }
        },
      ),
    );
  });

  it('reports the fault of a task at the end, and runs the others', async () => {
    const lanes = createLanes(2);
    let ran = 0;
    await lanes.start(0, () => Promise.reject(new Error('broken')));
    await lanes.start(0, async () => void ran++);
    await lanes.start(1, async () => void ran++);
    await expect(lanes.drained()).rejects.toThrow('broken');
    expect(ran).toBe(2);
  });
});
