import { toRequestedState } from '@playline/mints';
import { expect, it } from 'vitest';
import { MINTS, order, UNLINKED } from '../../test/minting-world.ts';
import { expectEnvelope, openChainApi } from '../../test/open-chain-api.ts';

it.each([
  ['was unlinked', UNLINKED],
  ['was never linked', `0x${'99'.repeat(20)}`],
])('POST mint-requests answers 404 for a collection that %s, and accepts nothing', async (_whose, contract) => {
  const api = await openChainApi();
  const answer = await api.call(`/${contract}/nfts/mint-requests`, { body: order('a') });
  expect(answer.status).toBe(404);
  await expectEnvelope(answer, 'RESOURCE_NOT_FOUND');
  expect(api.minting.requests).toEqual([]);
});

it('the new project of a collection does not see earlier requests, and may use their reference ids', async () => {
  const api = await openChainApi();
  const { minting } = api;
  await api.call(MINTS, { body: order('own') });
  const former = toRequestedState(minting.requests[0]!);
  for (const [at, over] of [
    { projectId: 'former', environmentId: 'former-production' },
    { projectId: 'demo', environmentId: 'demo-production' },
  ].entries())
    minting.reader.put({ ...former, ...over, referenceId: `former-${at}`, attemptId: String(at).repeat(32) });
  minting.reader.put(former);
  await minting.mints.view.restore([
    { ...former, projectId: 'former', referenceId: 'known', attemptId: '2'.repeat(32), error: 'secret' },
  ]);
  const list = (await (await api.call(MINTS)).json()) as { result: { reference_id: string }[] };
  expect(list.result.map(({ reference_id }) => reference_id)).toEqual(['own']);
  for (const id of ['former-0', 'former-1', 'known']) {
    const answer = await api.call(`${MINTS}/${id}`);
    expect(answer.status).toBe(404);
    await expectEnvelope(answer, 'RESOURCE_NOT_FOUND');
  }
  expect((await api.call(MINTS, { body: order('known') })).status).toBe(202);
});

it('GET mint-requests answers 404 for a request whose outcome is unknown', async () => {
  const api = await openChainApi();
  api.minting.broker = 'away';
  await api.call(MINTS, { body: order('a') });
  expect((await api.call(`${MINTS}/a`)).status).toBe(404);
});
