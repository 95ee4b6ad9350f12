import { describe, expect, it } from 'vitest';
import { CHAIN, expectEnvelope, openChainApi } from '../../test/open-chain-api.ts';
import { addressOf, tokenRow } from '../../test/rows.ts';

const TOKEN = `/${CHAIN.name}/tokens/${addressOf(2)}`;

describe('403', () => {
  it.each(['nonsense', '', 'sk_svcapik-000000000000000000000000000000000000'])(
    'answers an x-api-key %j that is not valid, although none is needed',
    async (key) => {
      const api = await openChainApi();
      await api.putTokens(tokenRow());
      const answer = await api.get(TOKEN, { 'x-api-key': key });
      expect(answer.status).toBe(403);
      await expectEnvelope(answer, 'AUTHENTICATION_ERROR', { header: 'x-api-key' });
    },
  );

  it('comes before faults of chain and address', async () => {
    const api = await openChainApi();
    for (const path of ['/none/tokens/x', `/${CHAIN.name}/tokens/x`])
      expect((await api.get(path, { 'x-api-key': 'nonsense' })).status).toBe(403);
  });

  it('reveals the key neither in the answer nor in a log', async () => {
    const api = await openChainApi();
    const answer = await api.get(TOKEN, { 'x-api-key': 'nonsense-key' });
    expect(await answer.text()).not.toContain('nonsense-key');
    expect(api.logLines.join()).not.toContain('nonsense-key');
  });
});
