import { describe, expect, it } from 'vitest';
import { CHAIN, expectEnvelope, OTHER_CHAIN, openChainApi } from '../../test/open-chain-api.ts';
import { addressOf, tokenRow } from '../../test/rows.ts';

const TOKEN = `/${CHAIN.name}/tokens/${addressOf(2)}`;

describe('404', () => {
  it.each([
    `/none/tokens/${addressOf(2)}`,
    '/none/tokens/x',
    `/Demo-Chain/tokens/${addressOf(2)}`,
    `/__proto__/tokens/${addressOf(2)}`,
  ])('answers a chain that is not served: %s', async (path) => {
    const api = await openChainApi();
    await api.putTokens(tokenRow());
    const answer = await api.get(path);
    expect(answer.status).toBe(404);
    await expectEnvelope(answer, 'RESOURCE_NOT_FOUND');
  });

  it('answers an unknown token, and one that exists only on another chain', async () => {
    const api = await openChainApi();
    await api.putTokens(tokenRow({ chain: OTHER_CHAIN.name }));
    for (const path of [TOKEN, `/${CHAIN.name}/tokens/${addressOf(9)}`]) {
      const answer = await api.get(path);
      expect(answer.status).toBe(404);
      await expectEnvelope(answer, 'RESOURCE_NOT_FOUND');
      expect(answer.headers.get('etag')).toBeNull();
    }
  });

  it.each(['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])('answers %s, and counts no call', async (method) => {
    const api = await openChainApi();
    const answer = await fetch(`${api.url}/v1/chains${TOKEN}`, { method });
    expect(answer.status).toBe(404);
    await expectEnvelope(answer, 'RESOURCE_NOT_FOUND');
    expect(answer.headers.get('ratelimit')).toBeNull();
  });

  it.each([
    '',
    '/',
    '/demo-chain',
    '/demo-chain/tokens',
    '/demo-chain/tokens/',
    `${TOKEN}/`,
    `${TOKEN}/more`,
    '//tokens/x',
  ])('answers the path %j below the chains', async (path) => {
    const answer = await (await openChainApi()).get(path);
    expect(answer.status).toBe(404);
    await expectEnvelope(answer, 'RESOURCE_NOT_FOUND');
  });
});
