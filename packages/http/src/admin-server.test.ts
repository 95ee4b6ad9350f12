import { createMetrics, VERSION } from '@playline/runtime';
import { afterEach, expect, it } from 'vitest';
import { type AdminServerOptions, openAdminServer } from './server.ts';

let close = async (): Promise<void> => {};
afterEach(() => close());

async function open(
  ready: AdminServerOptions['ready'],
  reasons?: AdminServerOptions['reasons'],
  degraded?: AdminServerOptions['degraded'],
): Promise<string> {
  const metrics = createMetrics('test');
  metrics.counter('seen_total', 'seen').inc(2);
  const server = await openAdminServer({ host: '127.0.0.1', port: 0, ready, reasons, degraded, metrics });
  close = async () => server.close();
  return `http://127.0.0.1:${server.port}`;
}

it('openAdminServer says it is alive although nothing it needs is ready', async () => {
  const url = await open(() => false);
  expect((await fetch(`${url}/livez`)).status).toBe(200);
});

it('openAdminServer names each thing that is not ready', async () => {
  const url = await open(() => ({ broker: false, schemas: true, keys: false }));
  const answer = await fetch(`${url}/readyz`);
  expect(answer.status).toBe(503);
  expect(await answer.json()).toEqual({ ready: false, version: VERSION, notReady: ['broker', 'keys'] });
});

it('openAdminServer says why a store cannot be used while it is not ready, and nothing of it once it is', async () => {
  let isReady = false;
  const url = await open(
    () => ({ broker: isReady }),
    () => ({ Kafka: 'Kafka does not answer' }),
  );
  const answer = async () => (await fetch(`${url}/readyz`)).json();
  expect(await answer()).toEqual({
    ready: false,
    version: VERSION,
    notReady: ['broker'],
    reasons: { Kafka: 'Kafka does not answer' },
  });
  isReady = true;
  expect(await answer()).toEqual({ ready: true, version: VERSION, notReady: [] });
});

it('openAdminServer stays ready without what it can do without, and names it with the reason', async () => {
  let isWhole = false;
  const url = await open(
    () => true,
    () => ({ Redis: 'Redis takes no writes (OOM)' }),
    { consents: () => isWhole },
  );
  const answer = await fetch(`${url}/readyz`);
  expect([answer.status, await answer.json()]).toEqual([
    200,
    {
      ready: true,
      version: VERSION,
      notReady: [],
      degraded: ['consents'],
      reasons: { Redis: 'Redis takes no writes (OOM)' },
    },
  ]);
  isWhole = true;
  expect(await (await fetch(`${url}/readyz`)).json()).toEqual({ ready: true, version: VERSION, notReady: [] });
});

it('openAdminServer is ready when everything is', async () => {
  const url = await open(async () => ({ broker: true }));
  const answer = await fetch(`${url}/readyz?probe=1`);
  expect(answer.status).toBe(200);
  expect(await answer.json()).toEqual({ ready: true, version: VERSION, notReady: [] });
});

it('openAdminServer is not ready when the check throws or never answers', async () => {
  const throwing = await open(() => Promise.reject(new Error('internal words')));
  const answer = await fetch(`${throwing}/readyz`);
  expect([answer.status, await answer.json()]).toEqual([
    503,
    { ready: false, version: VERSION, notReady: ['service'] },
  ]);
  await close();
  const hanging = await open(() => new Promise(() => {}));
  expect((await fetch(`${hanging}/readyz`)).status).toBe(503);
});

it('openAdminServer names the check that never answers, and the one that throws, among those that pass', async () => {
  const url = await open({
    consumer: () => true,
    store: () => new Promise(() => {}),
    broker: async () => true,
    keys: () => {
      throw new Error('internal words');
    },
    schemas: async () => false,
  });
  const answer = await fetch(`${url}/readyz`);
  expect([answer.status, await answer.json()]).toEqual([
    503,
    { ready: false, version: VERSION, notReady: ['store', 'keys', 'schemas'] },
  ]);
  await close();
  const fine = await open({ consumer: () => true, broker: async () => true });
  expect(await (await fetch(`${fine}/readyz`)).json()).toEqual({ ready: true, version: VERSION, notReady: [] });
});

it('openAdminServer gives the metrics as Prometheus text', async () => {
  const url = await open(() => true);
  expect(await (await fetch(`${url}/metrics`)).text()).toContain('seen_total{service="test"} 2');
});

it('openAdminServer answers 404 for anything else', async () => {
  const url = await open(() => true);
  expect((await fetch(`${url}/`)).status).toBe(404);
  expect((await fetch(`${url}/livez`, { method: 'POST' })).status).toBe(404);
});
