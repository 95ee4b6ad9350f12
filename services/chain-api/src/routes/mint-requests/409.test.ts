import { describe, expect, it } from 'vitest';
import { MINTS, order } from '../../test/minting-world.ts';
import { expectEnvelope, openChainApi } from '../../test/open-chain-api.ts';

describe('409', () => {
  it('lists every id that is in use or twice in the request, accepts nothing and costs nothing', async () => {
    const api = await openChainApi();
    await api.call(MINTS, { body: order('a', 'b') });
    const answer = await api.call(MINTS, { body: order('c', 'a', 'd', 'b', 'd') });
    expect(answer.status).toBe(409);
    await expectEnvelope(answer, 'CONFLICT_ERROR', { id: 'reference_id', values: ['a', 'b', 'd'] });
    expect(api.minting.requests).toHaveLength(2);
    const rest = await api.call(MINTS, { body: order('c', 'd') });
    expect(rest.headers.get('imx-remaining-mint-requests')).toBe('1996');
  });

  it('comes for ids in use before the signing key is looked up', async () => {
    const api = await openChainApi();
    await api.call(MINTS, { body: order('a') });
    api.minting.signableKeys.length = 0;
    const answer = await api.call(MINTS, { body: order('a', 'b') });
    expect(answer.status).toBe(409);
    await expectEnvelope(answer, 'CONFLICT_ERROR', { id: 'reference_id', values: ['a'] });
  });
});
