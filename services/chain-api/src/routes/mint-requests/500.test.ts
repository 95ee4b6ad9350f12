import { expect, it } from 'vitest';
import { asset, MINTS, order, signableKeyRecord } from '../../test/minting-world.ts';
import { openChainApi } from '../../test/open-chain-api.ts';

it('POST mint-requests answers 500 while an outcome is unknown, and the same assets continue as one attempt on the log', async () => {
  const api = await openChainApi();
  const { minting } = api;
  minting.broker = 'lost';
  expect((await api.call(MINTS, { body: order('a', 'b') })).status).toBe(500);
  minting.signableKeys.splice(0, 1, signableKeyRecord(`0x${'77'.repeat(20)}`));
  minting.broker = 'well';
  const again = await api.call(MINTS, { body: order('a', 'b') });
  expect(again.status).toBe(202);
  expect(again.headers.get('imx-remaining-mint-requests')).toBe('1998');
  const [first, , second] = minting.requests;
  expect(second).toEqual({ ...first, traceId: second!.traceId });
  expect((await api.call(MINTS, { body: order('a') })).status).toBe(409);
});

it('another asset under an id of unknown outcome gets 500, not 409', async () => {
  const api = await openChainApi();
  api.minting.broker = 'away';
  await api.call(MINTS, { body: order('a') });
  api.minting.broker = 'well';
  const other = { body: { assets: [asset('a', { token_id: '9' })] } };
  expect((await api.call(MINTS, other)).status).toBe(500);
  api.minting.isLogApplied = true;
  expect((await api.call(MINTS, other)).status).toBe(500);
  expect(api.minting.requests).toEqual([]);
});

it('mints and unknown reference ids get 500 while claims may be missing', async () => {
  const api = await openChainApi();
  await api.call(MINTS, { body: order('a') });
  api.minting.mints.restart({ isEmptied: true });
  expect((await api.call(MINTS, { body: order('a') })).status).toBe(500);
  expect((await api.call(`${MINTS}/a`)).status).toBe(500);
});
