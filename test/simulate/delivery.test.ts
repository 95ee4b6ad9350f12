import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import { expect, it, onTestFinished } from 'vitest';
import { createDelivery, createLanes, openHttpClient } from './delivery.ts';

type Handler = (response: ServerResponse, request: IncomingMessage) => void;

/** Starts a server that handles the n-th request with the n-th handler, and later requests with the last handler. */
async function serve(...handlers: Handler[]) {
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      bodies.push(body);
      handlers[Math.min(bodies.length, handlers.length) - 1]!(response, request);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const client = openHttpClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  onTestFinished(() => {
    client.close();
    server.close();
  });
  return { bodies, client };
}

const respond =
  (status: number, headers: Record<string, string> = {}): Handler =>
  (response) =>
    void response.writeHead(status, headers).end('{}');
const request = { method: 'POST', path: '/', headers: {}, body: Buffer.from('batch') } as const;
const fast = { pauseFirstMs: 1, pauseMaxMs: 2, responseMaxMs: 200 };

it('a delivery resends the same bytes after a 5xx, a reset connection or a timeout, and sets mayBeStored', async () => {
  const faults: Handler[] = [respond(500), respond(503), (response) => void response.destroy(), () => {}];
  const { bodies, client } = await serve(...faults, respond(200));
  const delivered = await createDelivery({ client, ...fast })(request);
  expect(delivered).toMatchObject({ kind: 'complete', attempts: 5, mayBeStored: true, response: { status: 200 } });
  expect(bodies).toEqual(Array.from({ length: 5 }, () => 'batch'));
});

it.each([200, 400, 401, 404, 413])('a delivery does not resend after a %i', async (status) => {
  const { bodies, client } = await serve(respond(status), respond(200));
  const delivered = await createDelivery({ client, ...fast })(request);
  expect(delivered).toMatchObject({ kind: 'complete', attempts: 1, mayBeStored: false, response: { status } });
  expect(bodies).toHaveLength(1);
});

it('a delivery waits for Retry-After after a 429, and does not set mayBeStored', async () => {
  const { client } = await serve(respond(429, { 'retry-after': '7' }), respond(200));
  const pauses: number[] = [];
  const pause = async (ms: number) => void pauses.push(ms);
  const delivered = await createDelivery({ client, ...fast, pause })(request);
  expect(pauses).toEqual([7000]);
  expect(delivered).toMatchObject({ kind: 'complete', attempts: 2, mayBeStored: false });
});

it('a delivery gives up after a timeout and reports the reason', async () => {
  const { client } = await serve(respond(500));
  const reasons: string[] = [];
  const deliver = createDelivery({ client, ...fast, totalMaxMs: 50, onRetry: (reason) => reasons.push(reason) });
  expect(await deliver(request)).toMatchObject({ kind: 'given up', reason: 'status 500', mayBeStored: true });
  expect(reasons.length).toBeGreaterThan(1);
});

it('createLanes runs a lane’s tasks in order and limits the number of concurrent tasks', async () => {
  const plans = fc.array(fc.nat(4), { maxLength: 60 });
  await fc.assert(
    fc.asyncProperty(plans, fc.integer({ min: 1, max: 5 }), async (plan, tasksMax) => {
      const lanes = createLanes(tasksMax);
      const ended: number[][] = [[], [], [], [], []];
      let peak = 0;
      for (const [index, lane] of plan.entries())
        await lanes.start(lane, async () => {
          peak = Math.max(peak, lanes.running);
          // Tasks take different numbers of ticks, so that some lanes overtake others.
          for (let tick = 0; tick < index % 4; tick++) await Promise.resolve();
          ended[lane]!.push(index);
        });
      await lanes.drained();
      expect(peak).toBeLessThanOrEqual(tasksMax);
      for (const [lane, tasks] of ended.entries())
        expect(tasks).toEqual([...plan.keys()].filter((index) => plan[index] === lane));
    }),
  );
});

it('createLanes runs all remaining tasks after a task fails, and drained reports the error', async () => {
  const lanes = createLanes(2);
  let ran = 0;
  await lanes.start(0, () => Promise.reject(new Error('broken')));
  await lanes.start(0, async () => void ran++);
  await lanes.start(1, async () => void ran++);
  await expect(lanes.drained()).rejects.toThrow('broken');
  expect(ran).toBe(2);
});
