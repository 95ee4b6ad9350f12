import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createClient, createPage, type FakePage, pass, useFakeTime } from './test/client.ts';
import { createService } from './test/service.ts';

let page: FakePage;
beforeEach(() => {
  useFakeTime();
  page = createPage();
});
afterEach(() => {
  page.remove();
  vi.useRealTimers();
});

const MINUTE_MS = 60_000;
/** Maximum size of all requests that may outlive the page. */
const QUOTA_BYTES = 60 * 1024;

it('a hidden page starts uncompressed keepalive requests without credentials before the listener returns', () => {
  const service = createService();
  const { client } = createClient(service, { compress: true });
  for (let level = 0; level < 30; level += 1) client.track('level_done', { level });
  page.hide();
  expect(service.requests.length).toBe(1);
  expect(service.requests[0]).toMatchObject({ keepalive: true, credentials: 'omit' });
  expect(service.requests[0]?.headers).not.toHaveProperty('content-encoding');
  expect(service.requests[0]?.messages.length).toBe(30);
});

it('a hidden page never exceeds the keepalive quota, even if it is hidden repeatedly', async () => {
  const service = createService();
  service.defaultReply = 'silent';
  const { client } = createClient(service);
  for (let level = 0; level < 300; level += 1) client.track('level_done', { padding: 'x'.repeat(level) });
  await pass(0);
  const before = service.requests.length;
  page.hide();
  page.show();
  client.track('late');
  page.hide();
  const leaving = service.requests.slice(before);
  expect(leaving.length).toBeGreaterThan(1);
  expect(leaving.every(({ keepalive }) => keepalive)).toBe(true);
  const bytes = leaving.reduce((sum, request) => sum + request.bytes, 0);
  expect(bytes).toBeLessThanOrEqual(QUOTA_BYTES);
  expect(bytes).toBeGreaterThan(QUOTA_BYTES - 2 * 1024);
});

it('a hidden page resends in-flight batches with keepalive, because other requests end with the page', async () => {
  const service = createService('silent');
  const { client } = createClient(service, { batchMessagesMax: 1 });
  const id = client.track('one');
  await pass(0);
  page.hide();
  expect(service.requests.map(({ keepalive, messages }) => [keepalive, messages[0]?.messageId])).toEqual([
    [false, id],
    [true, id],
  ]);
  await pass(MINUTE_MS);
  expect(await client.close()).toBe(0);
  expect(service.requests.length).toBe(2);
});

it('a hidden page sends nothing before Retry-After has elapsed', async () => {
  const service = createService('rate limited');
  const { client } = createClient(service);
  client.track('one');
  await client.flush();
  page.hide();
  page.setOnline(false);
  page.setOnline(true);
  await pass(0);
  expect(service.requests.length).toBe(1);
});

it('a hidden page reports a rejection once even if two responses contain it', async () => {
  const service = createService('all rejected', 'all rejected');
  const { client, reports } = createClient(service);
  const id = client.track('one');
  const flushed = client.flush();
  await Promise.resolve();
  page.hide();
  await flushed;
  await pass(MINUTE_MS);
  expect(service.requests.map(({ messages }) => messages.length)).toEqual([1, 1]);
  expect(reports.rejected.map(({ messageId }) => messageId)).toEqual([id]);
  expect(reports.dropped).toEqual([]);
});

it('an offline page sends nothing, and sends all queued messages when the network returns', async () => {
  const service = createService('unreachable');
  const { client } = createClient(service);
  client.track('one');
  await client.flush();
  page.setOnline(false);
  client.track('two');
  await pass(MINUTE_MS);
  page.hide();
  expect(service.requests.length).toBe(1);
  page.setOnline(true);
  await pass(0);
  expect(service.stored.size).toBe(2);
});

it('a closed client ignores page events', async () => {
  const service = createService();
  service.defaultReply = 'unreachable';
  const { client } = createClient(service);
  client.track('one');
  await client.close();
  const before = service.requests.length;
  page.hide();
  page.setOnline(true);
  await pass(MINUTE_MS);
  expect(service.requests.length).toBe(before);
});
