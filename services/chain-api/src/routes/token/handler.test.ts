import { ADDRESS_EXPECTED } from '@playline/contracts';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { CHAIN, expectEnvelope, OTHER_CHAIN, openChainApi } from '../../test/open-chain-api.ts';
import { addressOf, NOON_US, tokenRow } from '../../test/rows.ts';
import { etagOf, isFresh } from './handler.ts';

const TOKEN = `/${CHAIN.name}/tokens/${addressOf(2)}`;

it('GET token returns every member of the last stored state', async () => {
  const api = await openChainApi();
  await api.putTokens(tokenRow({ name: 'Silver' }), tokenRow({ updatedAt: NOON_US + 1 }));
  const answer = await api.get(TOKEN);
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toBe('application/json');
  expect(await answer.json()).toEqual({
    result: {
      chain: CHAIN,
      contract_address: addressOf(2),
      root_contract_address: addressOf(3),
      symbol: 'GOLD',
      decimals: 18,
      image_url: 'https://images.test/gold.png',
      name: 'Gold',
      verification_status: 'verified',
      updated_at: '2026-11-22T12:00:00.000001Z',
      is_canonical: true,
      root_chain_id: 'eip155:1',
      bridge_used: 'demo-bridge',
    },
  });
});

it('GET token has a strong entity tag, and only its caller may cache it', async () => {
  const api = await openChainApi();
  await api.putTokens(tokenRow());
  const [one, again] = [await api.get(TOKEN), await api.get(TOKEN)];
  expect(one.headers.get('cache-control')).toBe('private, no-cache');
  expect(one.headers.get('etag')).toMatch(/^"[\w-]{22}"$/);
  expect(again.headers.get('etag')).toBe(one.headers.get('etag'));
  await api.putTokens(tokenRow({ updatedAt: NOON_US + 1, verificationStatus: 'spam' }));
  expect((await api.get(TOKEN)).headers.get('etag')).not.toBe(one.headers.get('etag'));
});

it('HEAD token has the header fields of GET, and no body', async () => {
  const api = await openChainApi();
  await api.putTokens(tokenRow());
  const [get, head] = [await api.get(TOKEN), await fetch(`${api.url}/v1/chains${TOKEN}`, { method: 'HEAD' })];
  expect(head.status).toBe(200);
  expect(await head.text()).toBe('');
  for (const name of ['etag', 'content-length', 'content-type', 'cache-control'])
    expect(head.headers.get(name)).toBe(get.headers.get(name));
});

it('GET token does not return a token of another chain with the same address', async () => {
  const api = await openChainApi();
  await api.putTokens(tokenRow(), tokenRow({ chain: OTHER_CHAIN.name, symbol: 'OTHER' }));
  expect(await (await api.get(TOKEN)).json()).toMatchObject({ result: { symbol: 'GOLD', chain: CHAIN } });
});

it('GET token needs no key, and ignores keys of other kinds', async () => {
  const api = await openChainApi();
  await api.putTokens(tokenRow());
  const headers = { 'x-service-api-key': 'sk_svcapik-nonsense', 'x-service-publishable-key': 'nonsense' };
  expect((await api.get(TOKEN, headers)).status).toBe(200);
});

it("GET token has the header fields of the caller's limit", async () => {
  const api = await openChainApi();
  await api.putTokens(tokenRow());
  const { headers } = await api.get(TOKEN);
  expect(headers.get('ratelimit-policy')).toBe('"calls";q=1500;w=300');
  expect(headers.get('ratelimit')).toBe('"calls";r=1499;t=300');
});

it('GET token answers 304 with the tag and no body for the current version', async () => {
  const api = await openChainApi();
  await api.putTokens(tokenRow());
  const etag = (await api.get(TOKEN)).headers.get('etag') ?? '';
  for (const known of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
    const answer = await api.get(TOKEN, { 'if-none-match': known });
    expect(answer.status).toBe(304);
    expect(await answer.text()).toBe('');
    expect(answer.headers.get('etag')).toBe(etag);
    expect(answer.headers.get('cache-control')).toBe('private, no-cache');
    expect(answer.headers.get('content-length')).toBeNull();
  }
});

it('GET token answers 200 once the token has changed, and for an empty tag', async () => {
  const api = await openChainApi();
  await api.putTokens(tokenRow());
  const etag = (await api.get(TOKEN)).headers.get('etag') ?? '';
  await api.putTokens(tokenRow({ updatedAt: NOON_US + 1, name: 'Silver' }));
  for (const known of [etag, '"other"']) expect((await api.get(TOKEN, { 'if-none-match': known })).status).toBe(200);
});

it('a 304 counts as a call', async () => {
  const api = await openChainApi();
  await api.putTokens(tokenRow());
  for (const left of [1499, 1498]) {
    const answer = await api.get(TOKEN, { 'if-none-match': '*' });
    expect(answer.headers.get('ratelimit')).toContain(`r=${left};`);
  }
});

it.each([
  '0x',
  addressOf(2).slice(2),
  `${addressOf(2)}0`,
  addressOf(2).slice(0, -1),
  '0xg'.padEnd(42, '0'),
  '%00',
  'a%2Fb',
  '0X'.padEnd(42, '0'),
])('GET token answers 400 to %s, which is no address', async (address) => {
  const answer = await (await openChainApi()).get(`/${CHAIN.name}/tokens/${address}`);
  expect(answer.status).toBe(400);
  await expectEnvelope(answer, 'VALIDATION_ERROR', {
    errors: [{ field: 'contract_address', message: `contract_address must be ${ADDRESS_EXPECTED}` }],
  });
});

it('GET token answers 400 to a path that is not percent-encoded UTF-8', async () => {
  const answer = await (await openChainApi()).get(`/${CHAIN.name}/tokens/%ff`);
  expect(answer.status).toBe(400);
  await expectEnvelope(answer, 'VALIDATION_ERROR');
});

it.each(['nonsense', '', 'sk_svcapik-000000000000000000000000000000000000'])(
  'the x-api-key %j is refused with 403, although no key is needed',
  async (key) => {
    const api = await openChainApi();
    await api.putTokens(tokenRow());
    const answer = await api.get(TOKEN, { 'x-api-key': key });
    expect(answer.status).toBe(403);
    await expectEnvelope(answer, 'AUTHENTICATION_ERROR', { header: 'x-api-key' });
  },
);

it('an invalid x-api-key is refused before chain and address are checked', async () => {
  const api = await openChainApi();
  for (const path of ['/none/tokens/x', `/${CHAIN.name}/tokens/x`])
    expect((await api.get(path, { 'x-api-key': 'nonsense' })).status).toBe(403);
});

it('an invalid x-api-key appears neither in the answer nor in a log', async () => {
  const api = await openChainApi();
  const answer = await api.get(TOKEN, { 'x-api-key': 'nonsense-key' });
  expect(await answer.text()).not.toContain('nonsense-key');
  expect(api.logLines.join()).not.toContain('nonsense-key');
});

it.each([
  `/none/tokens/${addressOf(2)}`,
  '/none/tokens/x',
  `/Demo-Chain/tokens/${addressOf(2)}`,
  `/__proto__/tokens/${addressOf(2)}`,
])('GET token answers 404 for a chain that is not served: %s', async (path) => {
  const api = await openChainApi();
  await api.putTokens(tokenRow());
  const answer = await api.get(path);
  expect(answer.status).toBe(404);
  await expectEnvelope(answer, 'RESOURCE_NOT_FOUND');
});

it.each(['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])(
  '%s on a token is 404 without a counted call or a CORS header',
  async (method) => {
    const api = await openChainApi();
    const answer = await fetch(`${api.url}/v1/chains${TOKEN}`, { method });
    expect(answer.status).toBe(404);
    await expectEnvelope(answer, 'RESOURCE_NOT_FOUND');
    expect(answer.headers.get('ratelimit')).toBeNull();
    expect([...answer.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([]);
  },
);

it.each([
  '',
  '/',
  '/demo-chain',
  '/demo-chain/tokens',
  '/demo-chain/tokens/',
  `${TOKEN}/`,
  `${TOKEN}/more`,
  '//tokens/x',
])('the path %j below the chains is 404', async (path) => {
  const answer = await (await openChainApi()).get(path);
  expect(answer.status).toBe(404);
  await expectEnvelope(answer, 'RESOURCE_NOT_FOUND');
});

it('an address that has used up its calls gets 429 with Retry-After, and no other address', async () => {
  const api = await openChainApi({ RATE_LIMIT_CALLS: 2, TRUSTED_PROXIES: 1 });
  await api.putTokens(tokenRow());
  const from = (address: string) => api.get(TOKEN, { 'x-forwarded-for': address });
  for (const _ of [1, 2]) expect((await from('192.0.2.1')).status).toBe(200);
  const answer = await from('192.0.2.1');
  expect(answer.status).toBe(429);
  expect(answer.headers.get('retry-after')).toBe('300');
  expect(answer.headers.get('ratelimit')).toBe('"calls";r=0;t=300');
  await expectEnvelope(answer, 'TOO_MANY_REQUESTS_ERROR');
  expect((await from('192.0.2.2')).status).toBe(200);
  expect(await api.metrics()).toContain('playline_chain_api_rate_limited_total{limit="calls",service="chain-api"} 1');
});

it('a 429 comes before faults of the key, the chain and the address', async () => {
  const api = await openChainApi({ RATE_LIMIT_CALLS: 1 });
  await api.get(TOKEN);
  expect((await api.get('/none/tokens/x', { 'x-api-key': 'nonsense' })).status).toBe(429);
});

it('a key with a used up plan gets 429, and can make all calls of its plan before', async () => {
  const rateLimitKeys = {
    find: async (key: string) => (key === 'partner' ? { keyId: 'k', calls: 3, windowS: 60 } : null),
  };
  const api = await openChainApi({ RATE_LIMIT_CALLS: 1, rateLimitKeys });
  await api.putTokens(tokenRow());
  const statuses: number[] = [];
  for (let calls = 0; calls < 4; calls++) statuses.push((await api.get(TOKEN, { 'x-api-key': 'partner' })).status);
  expect(statuses).toEqual([200, 200, 200, 429]);
  expect((await api.get(TOKEN)).status).toBe(200);
});

it('GET token answers 500 while the store fails, with the reason only in the log', async () => {
  const readToken = () => Promise.reject(new Error('clickhouse-7.internal refused'));
  const api = await openChainApi({ store: { readToken } });
  const answer = await api.get(TOKEN);
  expect(answer.status).toBe(500);
  expect(answer.headers.get('etag')).toBeNull();
  await expectEnvelope(answer, 'INTERNAL_SERVER_ERROR');
  expect(api.logLines.join()).toContain('clickhouse-7.internal refused');
});

it('GET token answers 500 when the store exceeds the deadline', async () => {
  const api = await openChainApi({ store: { readToken: () => new Promise(() => {}) }, READ_DEADLINE_MS: 100 });
  const answer = await api.get(TOKEN);
  expect(answer.status).toBe(500);
  await expectEnvelope(answer, 'INTERNAL_SERVER_ERROR');
});

it('GET token answers 500, not 403, while the key cannot be checked', async () => {
  const api = await openChainApi({ rateLimitKeys: { find: () => Promise.reject(new Error('away')) } });
  await api.putTokens(tokenRow());
  expect((await api.get(TOKEN, { 'x-api-key': 'partner' })).status).toBe(500);
  expect((await api.get(TOKEN)).status).toBe(200);
});

const etag = etagOf('{"result":{}}');

it('entity tags are strong, and differ exactly when bodies differ', () => {
  expect(etag).toMatch(/^"[\w-]{22}"$/);
  expect(etagOf('{"result":{}}')).toBe(etag);
  expect(etagOf('{"result":{ }}')).not.toBe(etag);
});

it.each([etag, `W/${etag}`, `"a", ${etag}`, `"a",W/"b",${etag}`, '*', ' * ', `"with, comma", ${etag}`])(
  'a caller that sends %s has the current version',
  (header) => expect(isFresh(header, etag)).toBe(true),
);

it.each([undefined, '', '"a"', 'W/"a"', etag.slice(1, -1), '"*"', '**'])(
  'a caller that sends %s does not have the current version',
  (header) => expect(isFresh(header, etag)).toBe(false),
);

it('an entity tag is found exactly in lists that contain it', () => {
  const tag = fc.stringMatching(/^[\x21\x23-\x7e]{0,8}$/).map((text) => `"${text}"`);
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.constantFrom('', 'W/'), tag), { minLength: 1 }), tag, (list, own) => {
      const header = list.map((parts) => parts.join('')).join(', ');
      expect(isFresh(header, own)).toBe(list.some(([, text]) => text === own));
    }),
  );
});
