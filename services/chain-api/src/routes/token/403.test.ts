import { expect, it } from 'vitest';
import { CHAIN, expectEnvelope, openChainApi } from '../../test/open-chain-api.ts';
import { addressOf, tokenRow } from '../../test/rows.ts';

const TOKEN = `/${CHAIN.name}/tokens/${addressOf(2)}`;

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
