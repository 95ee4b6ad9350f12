import { expect, it } from 'vitest';
import { CHAIN, expectEnvelope, openChainApi } from '../../test/open-chain-api.ts';
import { addressOf, tokenRow } from '../../test/rows.ts';

const TOKEN = `/${CHAIN.name}/tokens/${addressOf(2)}`;

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
