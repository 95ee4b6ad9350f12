import { expect, it } from 'vitest';
import { CHAIN, expectEnvelope, openChainApi } from '../../test/open-chain-api.ts';
import { addressOf, tokenRow } from '../../test/rows.ts';

const TOKEN = `/${CHAIN.name}/tokens/${addressOf(2)}`;

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
