import { expect, it } from 'vitest';
import { CHAIN, OTHER_CHAIN, openChainApi } from '../../test/open-chain-api.ts';
import { addressOf, NOON_US, tokenRow } from '../../test/rows.ts';

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
