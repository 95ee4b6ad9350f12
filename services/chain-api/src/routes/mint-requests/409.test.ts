import { expect, it } from 'vitest';
import { MINTS, order } from '../../test/minting-world.ts';
import { expectEnvelope, openChainApi } from '../../test/open-chain-api.ts';

it('POST mint-requests answers 409 with every id that is in use or repeated, and accepts nothing', async () => {
  const api = await openChainApi();
  await api.call(MINTS, { body: order('a', 'b') });
  const answer = await api.call(MINTS, { body: order('c', 'a', 'd', 'b', 'd') });
  expect(answer.status).toBe(409);
  await expectEnvelope(answer, 'CONFLICT_ERROR', { id: 'reference_id', values: ['a', 'b', 'd'] });
  expect(api.minting.requests).toHaveLength(2);
  const rest = await api.call(MINTS, { body: order('c', 'd') });
  expect(rest.headers.get('imx-remaining-mint-requests')).toBe('1996');
});

it('POST mint-requests answers 409 for ids in use before it looks up the signing key', async () => {
  const api = await openChainApi();
  await api.call(MINTS, { body: order('a') });
  api.minting.signableKeys.length = 0;
  const answer = await api.call(MINTS, { body: order('a', 'b') });
  expect(answer.status).toBe(409);
  await expectEnvelope(answer, 'CONFLICT_ERROR', { id: 'reference_id', values: ['a'] });
});
