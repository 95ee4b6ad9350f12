import { ADDRESS_EXPECTED } from '@playline/contracts';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { CHAIN, expectEnvelope, OTHER_CHAIN, openChainApi } from '../../test/open-chain-api.ts';
import { addressOf, NOON_US, tokenRow } from '../../test/rows.ts';
import { etagOf, isFresh } from './handler.ts';

const TOKEN = `/${CHAIN.name}/tokens/${addressOf(2)}`;

it('GET token returns the latest stored version with all fields', async () => {
  const api = await openChainApi();
  await api.putTokens(tokenRow({ name: 'Silver' }), tokenRow({ updatedAt: NOON_US + 1 }));
  const response = await api.get(TOKEN);
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('application/json');
  expect(await response.json()).toEqual({
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

it('GET token returns a strong ETag and allows only private caching', async () => {
  const api = await openChainApi();
  await api.putTokens(tokenRow());
  const [first, second] = [await api.get(TOKEN), await api.get(TOKEN)];
  expect(first.headers.get('cache-control')).toBe('private, no-cache');
  expect(first.headers.get('etag')).toMatch(/^"[\w-]{22}"$/);
  expect(second.headers.get('etag')).toBe(first.headers.get('etag'));
  await api.putTokens(tokenRow({ updatedAt: NOON_US + 1, verificationStatus: 'spam' }));
  expect((await api.get(TOKEN)).headers.get('etag')).not.toBe(first.headers.get('etag'));
});

it('HEAD token returns the headers of GET without a body', async () => {
  const api = await openChainApi();
  await api.putTokens(tokenRow());
  const [get, head] = [await api.get(TOKEN), await fetch(`${api.url}/v1/chains${TOKEN}`, { method: 'HEAD' })];
  expect(head.status).toBe(200);
  expect(await head.text()).toBe('');
  for (const name of ['etag', 'content-length', 'content-type', 'cache-control'])
    expect(head.headers.get(name)).toBe(get.headers.get(name));
});

it('GET token ignores a token with the same address on another chain', async () => {
  const api = await openChainApi();
  await api.putTokens(tokenRow(), tokenRow({ chain: OTHER_CHAIN.name, symbol: 'OTHER' }));
  expect(await (await api.get(TOKEN)).json()).toMatchObject({ result: { symbol: 'GOLD', chain: CHAIN } });
});

it('GET token requires no key and ignores secret and publishable keys', async () => {
  const api = await openChainApi();
  await api.putTokens(tokenRow());
  const headers = { 'x-service-api-key': 'sk_svcapik-nonsense', 'x-service-publishable-key': 'nonsense' };
  expect((await api.get(TOKEN, headers)).status).toBe(200);
});

it('GET token returns the rate limit headers', async () => {
  const api = await openChainApi();
  await api.putTokens(tokenRow());
  const { headers } = await api.get(TOKEN);
  expect(headers.get('ratelimit-policy')).toBe('"calls";q=1500;w=300');
  expect(headers.get('ratelimit')).toBe('"calls";r=1499;t=300');
});

it('GET token returns 304 without a body if the token has not changed', async () => {
  const api = await openChainApi();
  await api.putTokens(tokenRow());
  const etag = (await api.get(TOKEN)).headers.get('etag') ?? '';
  for (const header of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
    const response = await api.get(TOKEN, { 'if-none-match': header });
    expect(response.status).toBe(304);
    expect(await response.text()).toBe('');
    expect(response.headers.get('etag')).toBe(etag);
    expect(response.headers.get('cache-control')).toBe('private, no-cache');
    expect(response.headers.get('content-length')).toBeNull();
  }
});

it('GET token returns 200 if the token has changed', async () => {
  const api = await openChainApi();
  await api.putTokens(tokenRow());
  const etag = (await api.get(TOKEN)).headers.get('etag') ?? '';
  await api.putTokens(tokenRow({ updatedAt: NOON_US + 1, name: 'Silver' }));
  for (const header of [etag, '"other"']) expect((await api.get(TOKEN, { 'if-none-match': header })).status).toBe(200);
});

it('a 304 counts against the rate limit', async () => {
  const api = await openChainApi();
  await api.putTokens(tokenRow());
  for (const remaining of [1499, 1498]) {
    const response = await api.get(TOKEN, { 'if-none-match': '*' });
    expect(response.headers.get('ratelimit')).toContain(`r=${remaining};`);
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
])('GET token returns 400 for the invalid address %s', async (address) => {
  const response = await (await openChainApi()).get(`/${CHAIN.name}/tokens/${address}`);
  expect(response.status).toBe(400);
  await expectEnvelope(response, 'VALIDATION_ERROR', {
    errors: [{ field: 'contract_address', message: `contract_address must be ${ADDRESS_EXPECTED}` }],
  });
});

it('GET token returns 400 for a path that is not percent-encoded UTF-8', async () => {
  const response = await (await openChainApi()).get(`/${CHAIN.name}/tokens/%ff`);
  expect(response.status).toBe(400);
  await expectEnvelope(response, 'VALIDATION_ERROR');
});

it.each(['nonsense', '', 'sk_svcapik-000000000000000000000000000000000000'])(
  'GET token returns 403 for the invalid x-api-key %j',
  async (key) => {
    const api = await openChainApi();
    await api.putTokens(tokenRow());
    const response = await api.get(TOKEN, { 'x-api-key': key });
    expect(response.status).toBe(403);
    await expectEnvelope(response, 'AUTHENTICATION_ERROR', { header: 'x-api-key' });
  },
);

it('an invalid x-api-key is rejected before the chain and the address are checked', async () => {
  const api = await openChainApi();
  for (const path of ['/none/tokens/x', `/${CHAIN.name}/tokens/x`])
    expect((await api.get(path, { 'x-api-key': 'nonsense' })).status).toBe(403);
});

it('an invalid x-api-key never appears in a response or log line', async () => {
  const api = await openChainApi();
  const response = await api.get(TOKEN, { 'x-api-key': 'nonsense-key' });
  expect(await response.text()).not.toContain('nonsense-key');
  expect(api.logLines.join()).not.toContain('nonsense-key');
});

it.each([
  `/none/tokens/${addressOf(2)}`,
  '/none/tokens/x',
  `/Demo-Chain/tokens/${addressOf(2)}`,
  `/__proto__/tokens/${addressOf(2)}`,
])('GET token returns 404 for the unknown chain in %s', async (path) => {
  const api = await openChainApi();
  await api.putTokens(tokenRow());
  const response = await api.get(path);
  expect(response.status).toBe(404);
  await expectEnvelope(response, 'RESOURCE_NOT_FOUND');
});

it.each(['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])(
  '%s on a token returns 404 without rate limit or CORS headers',
  async (method) => {
    const api = await openChainApi();
    const response = await fetch(`${api.url}/v1/chains${TOKEN}`, { method });
    expect(response.status).toBe(404);
    await expectEnvelope(response, 'RESOURCE_NOT_FOUND');
    expect(response.headers.get('ratelimit')).toBeNull();
    expect([...response.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([]);
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
])('the chain API returns 404 for the unknown path %j', async (path) => {
  const response = await (await openChainApi()).get(path);
  expect(response.status).toBe(404);
  await expectEnvelope(response, 'RESOURCE_NOT_FOUND');
});

it('a client address that reached its limit receives 429 with Retry-After, and other addresses are not affected', async () => {
  const api = await openChainApi({ RATE_LIMIT_CALLS: 2, TRUSTED_PROXIES: 1 });
  await api.putTokens(tokenRow());
  const from = (address: string) => api.get(TOKEN, { 'x-forwarded-for': address });
  for (const _ of [1, 2]) expect((await from('192.0.2.1')).status).toBe(200);
  const response = await from('192.0.2.1');
  expect(response.status).toBe(429);
  expect(response.headers.get('retry-after')).toBe('300');
  expect(response.headers.get('ratelimit')).toBe('"calls";r=0;t=300');
  await expectEnvelope(response, 'TOO_MANY_REQUESTS_ERROR');
  expect((await from('192.0.2.2')).status).toBe(200);
  expect(await api.metrics()).toContain('playline_chain_api_rate_limited_total{limit="calls",service="chain-api"} 1');
});

it('the rate limit is checked before the key, the chain and the address', async () => {
  const api = await openChainApi({ RATE_LIMIT_CALLS: 1 });
  await api.get(TOKEN);
  expect((await api.get('/none/tokens/x', { 'x-api-key': 'nonsense' })).status).toBe(429);
});

it('calls with a rate limit key return 429 after the plan is used up', async () => {
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

it('GET token returns 500 without details if the store fails, and logs the cause', async () => {
  const readToken = () => Promise.reject(new Error('clickhouse-7.internal refused'));
  const api = await openChainApi({ store: { readToken } });
  const response = await api.get(TOKEN);
  expect(response.status).toBe(500);
  expect(response.headers.get('etag')).toBeNull();
  await expectEnvelope(response, 'INTERNAL_SERVER_ERROR');
  expect(api.logLines.join()).toContain('clickhouse-7.internal refused');
});

it('GET token returns 500 if the store exceeds the deadline', async () => {
  const api = await openChainApi({ store: { readToken: () => new Promise(() => {}) }, READ_DEADLINE_MS: 100 });
  const response = await api.get(TOKEN);
  expect(response.status).toBe(500);
  await expectEnvelope(response, 'INTERNAL_SERVER_ERROR');
});

it('GET token returns 500 instead of 403 if the key cannot be checked', async () => {
  const api = await openChainApi({ rateLimitKeys: { find: () => Promise.reject(new Error('unavailable')) } });
  await api.putTokens(tokenRow());
  expect((await api.get(TOKEN, { 'x-api-key': 'partner' })).status).toBe(500);
  expect((await api.get(TOKEN)).status).toBe(200);
});

const etag = etagOf('{"result":{}}');

it('ETags are strong and depend only on the body', () => {
  expect(etag).toMatch(/^"[\w-]{22}"$/);
  expect(etagOf('{"result":{}}')).toBe(etag);
  expect(etagOf('{"result":{ }}')).not.toBe(etag);
});

it.each([etag, `W/${etag}`, `"a", ${etag}`, `"a",W/"b",${etag}`, '*', ' * ', `"with, comma", ${etag}`])(
  'If-None-Match %s matches the current version',
  (header) => expect(isFresh(header, etag)).toBe(true),
);

it.each([undefined, '', '"a"', 'W/"a"', etag.slice(1, -1), '"*"', '**'])(
  'If-None-Match %s does not match the current version',
  (header) => expect(isFresh(header, etag)).toBe(false),
);

it('If-None-Match matches exactly the lists that contain the ETag', () => {
  const tag = fc.stringMatching(/^[\x21\x23-\x7e]{0,8}$/).map((text) => `"${text}"`);
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.constantFrom('', 'W/'), tag), { minLength: 1 }), tag, (list, current) => {
      const header = list.map((parts) => parts.join('')).join(', ');
      expect(isFresh(header, current)).toBe(list.some(([, text]) => text === current));
    }),
  );
});
