import { expect, it } from 'vitest';
import { ELSEWHERE, OTHER_PROJECT, order } from '../../test/minting-world.ts';
import { expectEnvelope, openChainApi } from '../../test/open-chain-api.ts';

it.each([
  ['another project', OTHER_PROJECT],
  ['another environment of the project', ELSEWHERE],
])('POST mint-requests answers 403 for a collection of %s, and accepts nothing', async (_whose, contract) => {
  const api = await openChainApi();
  const answer = await api.call(`/${contract}/nfts/mint-requests`, { body: order('a') });
  expect(answer.status).toBe(403);
  await expectEnvelope(answer, 'AUTHENTICATION_ERROR');
  expect(api.minting.requests).toEqual([]);
});
