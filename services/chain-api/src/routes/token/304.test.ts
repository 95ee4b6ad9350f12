import { expect, it } from 'vitest';
import { CHAIN, openChainApi } from '../../test/open-chain-api.ts';
import { addressOf, NOON_US, tokenRow } from '../../test/rows.ts';

const TOKEN = `/${CHAIN.name}/tokens/${addressOf(2)}`;

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
