import { expect, it } from 'vitest';
import { COLLECTION, MINTS, order } from '../../test/minting-world.ts';
import { expectEnvelope, openChainApi } from '../../test/open-chain-api.ts';

it.each([MINTS, `/${COLLECTION}/refresh-metadata`, `/${COLLECTION}/nfts/refresh-metadata`])(
  'a body of %s that is not JSON gets 400 with the location of the fault',
  async (path) => {
    const api = await openChainApi();
    const answer = await api.call(path, { body: '{"assets":\n[NaN]}' });
    expect(answer.status).toBe(400);
    await expectEnvelope(answer, 'VALIDATION_ERROR', { offset: 12, line: 2, column: 2, found: 'NaN' });
  },
);

it('POST mint-requests answers 400 without a signing key, and names the fix', async () => {
  const api = await openChainApi();
  api.minting.signableKeys.length = 0;
  const answer = await api.call(MINTS, { body: order('a') });
  expect(answer.status).toBe(400);
  expect(await answer.json()).toMatchObject({
    message: expect.stringMatching(/create a signable key in the portal/),
  });
});
