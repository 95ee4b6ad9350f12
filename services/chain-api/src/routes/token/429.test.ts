import { expect, it } from 'vitest';
import { CHAIN, expectEnvelope, openChainApi } from '../../test/open-chain-api.ts';
import { addressOf, tokenRow } from '../../test/rows.ts';

const TOKEN = `/${CHAIN.name}/tokens/${addressOf(2)}`;

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
