import { expect, it } from 'vitest';
import { type AudienceStore, createMemoryStore } from './index.ts';
import { createClient } from './test/client.ts';
import { createService } from './test/service.ts';

/** Opens a later page, calls `track` and returns the sent message. */
async function sentByNextPage(store: AudienceStore, options: Parameters<typeof createClient>[1] = {}) {
  const service = createService();
  const { client } = createClient(service, { store, ...options });
  const id = client.track('later');
  await client.flush();
  return service.requests.flatMap(({ messages }) => messages).find(({ messageId }) => messageId === id);
}

it('identify also applies to messages from later pages', async () => {
  const store = createMemoryStore();
  const { client } = createClient(createService(), { store });
  client.identify('u-1', { identityType: 'steam' });
  await client.close();
  expect(await sentByNextPage(store)).toMatchObject({ userId: 'u-1', identityType: 'steam' });
});

it('on a later page, identify applies only after consent is given', async () => {
  const store = createMemoryStore();
  await createClient(createService(), { store }).client.identify('u-1');
  const service = createService();
  const { client } = createClient(service, { store, consent: undefined });
  client.setConsent('full');
  const id = client.track('after');
  await client.flush();
  const sent = service.requests.flatMap(({ messages }) => messages);
  expect(sent.find(({ messageId }) => messageId === id)).toMatchObject({ userId: 'u-1' });
});

it.each(['anonymous', 'none'] as const)(
  'the identified user is removed from the store when consent becomes %s',
  async (level) => {
    const store = createMemoryStore();
    const { client } = createClient(createService(), { store });
    client.identify('u-1');
    client.setConsent(level);
    expect(
      store
        .keys()
        .map((key) => store.get(key))
        .join(),
    ).not.toContain('u-1');
    expect(await sentByNextPage(store)).not.toHaveProperty('userId');
  },
);

it('the client ignores invalid store entries that another script has written', async () => {
  for (const text of ['{', '"u-1"', '[]', '{"userId":3}', '{"userId":"u","identityType":"Steam"}', 'null']) {
    const store = createMemoryStore();
    for (const key of ['user', 'registered', 'anonymousId']) store.set(`audience:${key}`, text);
    store.set('audience:anonymousId', 'x'.repeat(300));
    const sent = await sentByNextPage(store);
    expect(sent).not.toHaveProperty('userId');
    expect(sent?.properties ?? {}).not.toHaveProperty('0');
    expect(sent?.anonymousId).toHaveLength(36);
  }
});

it('registered properties are added to later events and pages, and call properties take precedence', async () => {
  const [service, store] = [createService(), createMemoryStore()];
  const { client } = createClient(service, { store });
  client.register({ build: '1.2', level: 1 });
  client.register({ region: 'eu' });
  client.track('one', { level: 3 });
  client.page();
  client.screen('shop');
  client.identify('u-1', { traits: { plan: 'free' } });
  client.alias({ fromId: 'a', toId: 'b' });
  await client.close();
  const all = { build: '1.2', level: 1, region: 'eu' };
  const { messages = [] } = service.requests[0] ?? {};
  expect(messages.map(({ properties }) => properties)).toEqual([{ ...all, level: 3 }, all, all, undefined, undefined]);
  expect((await sentByNextPage(store))?.properties).toEqual(all);
});

it('unregister removes a single registered property, and reset removes all', async () => {
  const store = createMemoryStore();
  const { client } = createClient(createService(), { store });
  client.register({ build: '1.2', region: 'eu' });
  client.unregister('region');
  expect((await sentByNextPage(store))?.properties).toEqual({ build: '1.2' });
  client.reset();
  expect(await sentByNextPage(store)).not.toHaveProperty('properties');
});

it('later changes to the registered object do not affect registered properties', async () => {
  const [service, properties] = [createService(), { items: ['sword'] }];
  const { client } = createClient(service);
  client.register(properties);
  properties.items.push('shield');
  client.track('one');
  await client.flush();
  expect(service.requests[0]?.messages[0]?.properties).toEqual({ items: ['sword'] });
});

it('properties registered without consent stay in memory and are used once consent is given', async () => {
  const [service, store] = [createService(), createMemoryStore()];
  const { client } = createClient(service, { store, consent: undefined });
  client.register({ build: '1.2' });
  expect(store.keys()).toEqual([]);
  client.setConsent('anonymous');
  client.track('one');
  await client.flush();
  expect(service.requests[0]?.messages[0]?.properties).toEqual({ build: '1.2' });
  client.setConsent('none');
  expect(store.keys()).toEqual([]);
});
