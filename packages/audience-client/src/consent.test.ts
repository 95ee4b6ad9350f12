import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createMemoryStore } from './index.ts';
import { createClient, pass, useFakeTime } from './test/client.ts';
import { createService } from './test/service.ts';

beforeEach(useFakeTime);
afterEach(() => vi.useRealTimers());

const DAY_MS = 24 * 60 * 60 * 1000;

it('by default, a client has no consent and neither queues, stores nor sends messages', async () => {
  const [service, store] = [createService(), createMemoryStore()];
  const { client, reports } = createClient(service, { store, consent: undefined });
  const { track, page, screen, identify, alias } = client;
  const ids = [track('a'), page(), screen('b'), identify('u'), alias({ fromId: 'a', toId: 'b' })];
  await pass(DAY_MS);
  expect(await client.close()).toBe(0);
  expect(ids).toEqual([null, null, null, null, null]);
  expect([service.requests, store.keys(), reports.dropped]).toEqual([[], [], []]);
});

it("without consent, an earlier page's stored messages are kept until consent is given", async () => {
  const store = createMemoryStore();
  const earlier = createClient(createService('unreachable'), { store });
  const id = earlier.client.track('one');
  await earlier.client.close();
  const service = createService();
  const { client } = createClient(service, { store, consent: 'none' });
  await pass(DAY_MS);
  expect(service.requests).toEqual([]);
  client.setConsent('full');
  await pass(DAY_MS);
  expect([...service.stored.keys()]).toEqual([id]);
  expect(client.anonymousId).toBe(earlier.client.anonymousId);
});

it('withdrawing consent clears the queue and the store, including messages of other tabs, and reports them', async () => {
  const [service, store] = [createService(), createMemoryStore()];
  const [one, other] = [createClient(service, { store }), createClient(service, { store })];
  const ids = [one.client.track('one')];
  await pass(1);
  ids.push(other.client.track('two'));
  one.client.setConsent('none');
  expect(store.keys()).toEqual([]);
  expect(one.reports.dropped).toEqual([{ messageIds: ids, reason: 'consent' }]);
  await pass(DAY_MS);
  expect(await other.client.flush()).toBe(0);
  expect(service.requests).toEqual([]);
});

it('withdrawing consent cancels a batch that is still being compressed', async () => {
  vi.useRealTimers();
  const service = createService();
  const { client } = createClient(service, { compress: true });
  for (let level = 0; level < 50; level += 1) client.track('level_done', { level });
  const flushed = client.flush();
  // The batch is taken from the queue in the next microtask, and compressed asynchronously after that.
  await Promise.resolve().then(() => {});
  client.setConsent('none');
  expect(await flushed).toBe(0);
  expect(service.stored.size).toBe(0);
});

it('with anonymous consent, no user ids, identify or alias messages are sent', async () => {
  const service = createService();
  const { client } = createClient(service, { consent: 'anonymous' });
  expect(client.identify('u-1')).toBeNull();
  expect(client.alias({ fromId: 'a', toId: 'b' })).toBeNull();
  client.track('one');
  await client.flush();
  expect(service.requests[0]?.messages).toEqual([
    expect.objectContaining({ type: 'track', consentLevel: 'anonymous', anonymousId: client.anonymousId }),
  ]);
  expect(service.requests[0]?.messages[0]).not.toHaveProperty('userId');
});

it('lowering consent to anonymous removes user ids, identify and alias messages from the queue', async () => {
  const service = createService();
  const { client, reports } = createClient(service);
  const identified = client.identify('u-1', { identityType: 'steam', traits: { name: 'Ada' } });
  const tracked = client.track('one');
  const linked = client.alias({ fromId: 'a', toId: 'b' });
  client.setConsent('anonymous');
  const after = client.track('two');
  await client.flush();
  expect(reports.dropped).toEqual([{ messageIds: [identified, linked], reason: 'consent' }]);
  expect([...service.stored.keys()]).toEqual([tracked, after]);
  const sent = JSON.stringify(service.requests);
  for (const value of ['u-1', 'steam', 'Ada', '"full"']) expect(sent).not.toContain(value);
});

it("anonymous consent also applies to an earlier page's stored messages", async () => {
  const store = createMemoryStore();
  const earlier = createClient(createService('unreachable'), { store });
  earlier.client.identify('u-1');
  const id = earlier.client.track('one');
  await earlier.client.close();
  const service = createService();
  const { client } = createClient(service, { store, consent: 'anonymous' });
  await client.flush();
  expect([...service.stored.keys()]).toEqual([id]);
  expect(JSON.stringify(service.requests)).not.toContain('u-1');
});

it('anonymous consent also applies to a batch that is resent after a failure', async () => {
  const service = createService('silent');
  const { client } = createClient(service);
  client.identify('u-1');
  const id = client.track('one');
  void client.flush();
  await pass(0);
  client.setConsent('anonymous');
  await pass(DAY_MS);
  expect(service.requests.length).toBe(2);
  expect(service.requests[1]?.messages).toMatchObject([{ messageId: id, consentLevel: 'anonymous' }]);
  expect(JSON.stringify(service.requests[1])).not.toContain('u-1');
});

it('reset forgets the user and stores a new anonymous id', async () => {
  const [service, store] = [createService(), createMemoryStore()];
  const { client } = createClient(service, { store });
  client.identify('u-1', { identityType: 'steam' });
  client.track('one');
  const before = client.anonymousId;
  client.reset();
  client.track('two');
  await client.flush();
  const [, one, two] = service.requests[0]?.messages ?? [];
  expect(one).toMatchObject({ userId: 'u-1', identityType: 'steam', anonymousId: before });
  expect(two).not.toHaveProperty('userId');
  expect(two?.anonymousId).not.toBe(before);
  expect(createClient(service, { store }).client.anonymousId).toBe(client.anonymousId);
});
