import { describe, expect, it } from 'vitest';
import { COLLECTION, MINTS, order, SECRET_KEY_HEADER } from '../../test/minting-world.ts';
import { expectEnvelope, openChainApi } from '../../test/open-chain-api.ts';

describe('400', () => {
  it('answers a call without a key, and names the header', async () => {
    const api = await openChainApi();
    const headers = { 'content-type': 'application/json' };
    const url = `${api.url}/v1/chains/demo-chain/collections${MINTS}`;
    const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(order('a')) });
    expect(answer.status).toBe(400);
    await expectEnvelope(answer, 'VALIDATION_ERROR', { header: SECRET_KEY_HEADER });
  });

  it.each([MINTS, `/${COLLECTION}/refresh-metadata`, `/${COLLECTION}/nfts/refresh-metadata`])(
    'answers a body of %s that is not JSON with the place of the fault',
    async (path) => {
      const api = await openChainApi();
      const answer = await api.call(path, { body: '{"assets":\n[NaN]}' });
      expect(answer.status).toBe(400);
      await expectEnvelope(answer, 'VALIDATION_ERROR', { offset: 12, line: 2, column: 2, found: 'NaN' });
    },
  );

  it('is the answer without a signing key, with a sentence that says what to do', async () => {
    const api = await openChainApi();
    api.minting.signableKeys.length = 0;
    const answer = await api.call(MINTS, { body: order('a') });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({
      message: expect.stringMatching(/create a signable key in the portal/),
    });
  });
});
