import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createMemoryStore } from './index.ts';
import { createClient, holdTime, pass } from './test/client.ts';
import { createService } from './test/service.ts';

beforeEach(holdTime);
afterEach(() => vi.useRealTimers());

const DAY_MS = 24 * 60 * 60 * 1000;

it('without consent nothing is queued, stored or sent, and that is how a client begins', async () => {
  const [service, store] = [createService(), createMemoryStore()];
  const { client, reports } = createClient(service, { store, consent: undefined });
  const { track, page, screen, identify, alias } = client;
  const made = [track('a'), page(), screen('b'), identify('u'), alias({ fromId: 'a', toId: 'b' })];
  await pass(DAY_MS);
  expect(await client.close()).toBe(0);
  expect(made).toEqual([null, null, null, null, null]);
  expect([service.requests, store.keys(), reports.dropped]).toEqual([[], [], []]);
});

it('without consent what an earlier page was allowed to keep waits for the answer', async () => {
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

it('consent that is withdrawn empties queue and store, those of other tabs too, and is reported', async () => {
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

it('consent that is withdrawn stops a batch that is still being compressed', async () => {
  vi.useRealTimers();
  const service = createService();
  const { client } = createClient(service, { compress: true });
  for (let level = 0; level < 50; level += 1) client.track('level_done', { level });
  const flushed = client.flush();
  // The batch is taken from the queue in the next turn of the event loop, and compressed in the turns after it.
  await Promise.resolve().then(() => {});
  client.setConsent('none');
  expect(await flushed).toBe(0);
  expect(service.stored.size).toBe(0);
});

it('anonymous consent sends no user id and neither identifies nor links', async () => {
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

it('anonymous consent given after full consent takes the user id out of what is queued, and with it identify and alias', async () => {
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
  for (const word of ['u-1', 'steam', 'Ada', '"full"']) expect(sent).not.toContain(word);
});

it('anonymous consent holds for what an earlier page has left in the store', async () => {
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

it('anonymous consent holds for a batch that failed and is sent again', async () => {
  const service = createService('hangs');
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

it('reset forgets the user and takes a new anonymous id that is kept', async () => {
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
