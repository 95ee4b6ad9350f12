import { toRequestedState } from '@playline/mints';
import { describe, expect, it } from 'vitest';
import { MINTS, order, UNLINKED } from '../../test/minting-world.ts';
import { expectEnvelope, openChainApi } from '../../test/open-chain-api.ts';

describe('404', () => {
  it.each([
    ['was unlinked', UNLINKED],
    ['nobody has linked', `0x${'99'.repeat(20)}`],
  ])('answers for a collection that %s, and takes nothing', async (_whose, contract) => {
    const api = await openChainApi();
    const answer = await api.call(`/${contract}/nfts/mint-requests`, { body: order('a') });
    expect(answer.status).toBe(404);
    await expectEnvelope(answer, 'RESOURCE_NOT_FOUND');
    expect(api.minting.requests).toEqual([]);
  });

  it('answers a collection’s new project for all earlier requests, whose reference ids it may use itself', async () => {
    const api = await openChainApi();
    const { minting } = api;
    await api.call(MINTS, { body: order('ours') });
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
    expect(list.result.map(({ reference_id }) => reference_id)).toEqual(['ours']);
    for (const id of ['former-0', 'former-1', 'known']) {
      const answer = await api.call(`${MINTS}/${id}`);
      expect(answer.status).toBe(404);
      await expectEnvelope(answer, 'RESOURCE_NOT_FOUND');
    }
    expect((await api.call(MINTS, { body: order('known') })).status).toBe(202);
  });

  it('answers for a request whose outcome is unknown', async () => {
    const api = await openChainApi();
    api.minting.broker = 'away';
    await api.call(MINTS, { body: order('a') });
    expect((await api.call(`${MINTS}/a`)).status).toBe(404);
  });
});
