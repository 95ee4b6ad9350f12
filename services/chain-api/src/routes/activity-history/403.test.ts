import { describe, expect, it } from 'vitest';
import { CHAIN, expectEnvelope, openChainApi } from '../../test/open-chain-api.ts';

describe('403', () => {
  it('answers an x-api-key that is not valid, ahead of chain and query', async () => {
    const api = await openChainApi();
    for (const path of [`/${CHAIN.name}/activity-history?page_size=0`, '/none/activity-history']) {
      const answer = await api.get(path, { 'x-api-key': 'nonsense' });
      expect(answer.status).toBe(403);
      await expectEnvelope(answer, 'AUTHENTICATION_ERROR', { header: 'x-api-key' });
      expect(answer.headers.get('ratelimit-policy')).toBe('"calls";q=1500;w=300');
    }
  });
});
