import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { type AudienceStore, createMemoryStore } from './index.ts';
import { createClient, pass, useFakeTime } from './test/client.ts';
import { createService } from './test/service.ts';

beforeEach(useFakeTime);
afterEach(() => vi.useRealTimers());

const DAY_MS = 24 * 60 * 60 * 1000;
const messageKeys = (store: AudienceStore) => store.keys().filter((key) => key.includes(':message:'));

it('the queue drops and reports the oldest messages above its message limit', async () => {
  const service = createService();
  const { client, reports } = createClient(service, { queueMessagesMax: 3 });
  const ids = Array.from({ length: 5 }, () => client.track('one') ?? '');
  expect(reports.dropped.flatMap(({ messageIds }) => messageIds)).toEqual(ids.slice(0, 2));
  expect(reports.dropped[0]?.reason).toBe('queue_full');
  await client.flush();
  expect([...service.stored.keys()]).toEqual(ids.slice(2));
});

it('the queue drops and reports the oldest messages above its size limit', async () => {
  const store = createMemoryStore();
  const { client, reports } = createClient(createService(), { store, queueBytesMax: 10_000 });
  for (let level = 0; level < 20; level += 1) client.track('level_done', { padding: 'ü'.repeat(500) });
  const bytes = messageKeys(store).reduce((sum, key) => sum + Buffer.byteLength(store.get(key) ?? ''), 0);
  expect(bytes).toBeLessThanOrEqual(10_000);
  expect(reports.dropped.length).toBe(20 - messageKeys(store).length);
});

it('the queue does not drop in-flight messages', async () => {
  const service = createService('silent');
  const { client, reports } = createClient(service, { queueMessagesMax: 2, batchMessagesMax: 2 });
  const ids = Array.from({ length: 2 }, () => client.track('in flight') ?? '');
  await pass(0);
  const late = client.track('late');
  expect(reports.dropped).toEqual([{ messageIds: [late], reason: 'queue_full' }]);
  await pass(DAY_MS);
  expect([...service.stored.keys()]).toEqual(ids);
});

it('the queue accepts a message of exactly 32 KiB, and drops and reports a larger message', async () => {
  const { client, reports } = createClient(createService());
  const store = createMemoryStore();
  const probe = createClient(createService(), { store });
  probe.client.track('big', { padding: '' });
  const frame = Buffer.byteLength(store.get(messageKeys(store)[0] ?? '') ?? '');
  expect(client.track('big', { padding: 'x'.repeat(32 * 1024 - frame) })).not.toBeNull();
  expect(reports.dropped).toEqual([]);
  expect(client.track('big', { padding: 'x'.repeat(32 * 1024 - frame + 1) })).toBeNull();
  expect(reports.dropped).toMatchObject([{ reason: 'too_large' }]);
});

it('the queue drops and reports messages that are not serialisable', () => {
  const { client, reports } = createClient(createService());
  const circle: Record<string, unknown> = {};
  circle.self = circle;
  expect(client.track('circle', circle)).toBeNull();
  expect(client.track('big', { big: 1n })).toBeNull();
  expect(reports.dropped.map(({ reason }) => reason)).toEqual(['unserialisable', 'unserialisable']);
});

it('later changes to a properties object do not affect queued messages', async () => {
  const service = createService();
  const { client } = createClient(service);
  const properties = { level: 1 };
  const trackedAt = new Date().toISOString();
  client.track('level_done', properties);
  properties.level = 2;
  await pass(1000);
  await client.flush();
  expect(service.requests[0]?.messages[0]).toMatchObject({ properties: { level: 1 }, eventTimestamp: trackedAt });
});

it('the store contains a message from the track call until the service confirms the message', async () => {
  const store = createMemoryStore();
  const { client } = createClient(createService('server error'), { store });
  const id = client.track('one');
  expect(messageKeys(store)).toEqual([expect.stringContaining(String(id))]);
  await client.flush();
  expect(messageKeys(store).length).toBe(1);
  expect(await client.close()).toBe(0);
  expect(messageKeys(store)).toEqual([]);
});

it('messages are sent from memory if every store operation fails', async () => {
  const fail = () => {
    throw new Error('QuotaExceededError');
  };
  const service = createService('server error');
  const store = { get: fail, set: fail, remove: fail, keys: fail };
  const { client } = createClient(service, { store });
  client.track('one');
  await pass(DAY_MS);
  expect(service.stored.size).toBe(1);
});

it('stored messages that are expired or malformed are dropped', async () => {
  const store = createMemoryStore();
  const service = createService('unreachable');
  const old = createClient(service, { store });
  const [expired] = [old.client.track('one')];
  await old.client.close();
  await pass(30 * DAY_MS + 1);
  store.set('audience:message:pk_svcapik-1:zzz', '{"broken');
  const { client, reports } = createClient(service, { store });
  const id = client.track('two');
  await client.flush();
  expect([...service.stored.keys()]).toEqual([id]);
  expect(reports.dropped).toEqual([{ messageIds: [expired], reason: 'expired' }]);
  expect(messageKeys(store)).toEqual([]);
});

it('two publishable keys have separate stored messages but share the anonymous id', async () => {
  const store = createMemoryStore();
  const one = createClient(createService('unreachable'), { store });
  one.client.track('one');
  await one.client.close();
  const service = createService();
  const two = createClient(service, { store, publishableKey: 'pk_svcapik-2' });
  expect(await two.client.close()).toBe(0);
  expect(service.requests).toEqual([]);
  expect(two.client.anonymousId).toBe(one.client.anonymousId);
});

it('two clients that share a store lose no messages and avoid sending duplicates', async () => {
  const store = createMemoryStore();
  const service = createService();
  const one = createClient(service, { store });
  const firstId = one.client.track('one');
  const two = createClient(service, { store });
  const secondId = two.client.track('two');
  await two.client.flush();
  await one.client.flush();
  expect([...service.stored.keys()].sort()).toEqual([firstId, secondId].map(String).sort());
  // The second client loaded and sent the first client's message. The first client then found the message settled.
  expect(service.requests.length).toBe(1);
});
