import { toSignerKey } from '@playline/contracts';
import { expect, it } from 'vitest';
import { asset, MINTS, OWNER, order, SIGNER, signableKeyRecord } from '../../test/minting-world.ts';
import { openChainApi } from '../../test/open-chain-api.ts';

it('POST mint-requests answers 202 with the quota in body and header fields once the requests are on the log', async () => {
  const api = await openChainApi();
  const answer = await api.call(MINTS, {
    body: { assets: [asset('sword-1', { token_id: '7', amount: '1', metadata: { name: 'Sword', extra: 1 } })] },
  });
  expect(answer.status).toBe(202);
  const body = (await answer.json()) as Record<string, string>;
  expect(body).toEqual({
    imx_mint_requests_limit: '2000',
    imx_mint_requests_limit_reset: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    imx_remaining_mint_requests: '1999',
    imx_mint_requests_retry_after: '0',
  });
  for (const [name, value] of Object.entries(body)) expect(answer.headers.get(name.replaceAll('_', '-'))).toBe(value);
  const [request] = api.minting.requests;
  expect(toSignerKey(request!)).toBe(`demo-chain:${SIGNER}`);
  expect(request).toMatchObject({
    referenceId: 'sword-1',
    projectId: 'demo',
    environmentId: 'demo-development',
    tokenId: '7',
    amount: '1',
    metadata: '{"name":"Sword"}',
    traceId: answer.headers.get('x-trace-id'),
  });
  expect(`0x${request!.ownerAddress.toString('hex')}`).toBe(OWNER.toLowerCase());
});

it('POST mint-requests accepts a body with a UTF-8 byte order mark', async () => {
  const api = await openChainApi();
  expect((await api.call(MINTS, { body: `\ufeff${JSON.stringify(order('marked'))}` })).status).toBe(202);
  expect(api.minting.requests.map(({ referenceId }) => referenceId)).toEqual(['marked']);
});

it('POST mint-requests counts each token id once', async () => {
  const api = await openChainApi();
  const assets = ['a', 'b', 'c'].map((id) => asset(id, { token_id: id === 'c' ? '2' : '1' }));
  const answer = await api.call(MINTS, { body: { assets } });
  expect(answer.headers.get('imx-remaining-mint-requests')).toBe('1998');
});

it('POST mint-requests uses the oldest live signing key of the environment', async () => {
  const api = await openChainApi();
  const { signableKeys, requests } = api.minting;
  const [older, disabled, foreign] = ['aa', 'bb', 'cc'].map((byte) => `0x${byte.repeat(20)}`) as [
    string,
    string,
    string,
  ];
  signableKeys.push(
    signableKeyRecord(older, { createdAt: 0 }),
    signableKeyRecord(disabled, { createdAt: -1, state: 'disabled' }),
  );
  signableKeys.push(signableKeyRecord(foreign, { createdAt: -2, environmentId: 'demo-production' }));
  await api.call(MINTS, { body: order('a') });
  expect(requests[0]!.signer.toString('hex')).toBe('aa'.repeat(20));
});
