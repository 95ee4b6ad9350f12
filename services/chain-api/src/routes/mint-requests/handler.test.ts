import { type ClientRequest, request } from 'node:http';
import { toSignerKey } from '@playline/contracts';
import { MINT_BODY_BYTES_MAX, type MintState, toRequestedState } from '@playline/mints';
import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import {
  asset,
  COLLECTION,
  MINTS,
  mintBody,
  OTHER_ENVIRONMENT,
  OTHER_PROJECT,
  OWNER,
  SECRET_KEY_HEADER,
  SIGNER,
  signableKeyRecord,
  UNLINKED,
} from '../../test/minting-world.ts';
import { expectEnvelope, openChainApi, type TestChainApi } from '../../test/open-chain-api.ts';

interface ListPage {
  readonly result: readonly { readonly reference_id: string }[];
  readonly page: { readonly next_cursor: string };
}

it('GET mint-requests returns a mint request as soon as it is accepted', async () => {
  const api = await openChainApi();
  await api.call(MINTS, { body: mintBody('sword 1/ä') });
  const found = await api.call(`${MINTS}/${encodeURIComponent('sword 1/ä')}`);
  expect(found.status).toBe(200);
  expect(await found.json()).toMatchObject({
    result: [{ reference_id: 'sword 1/ä', status: 'pending', owner_address: OWNER.toLowerCase() }],
    page: { previous_cursor: expect.any(String), next_cursor: expect.any(String) },
  });
  const unknown = await api.call(`${MINTS}/nothing`);
  expect(unknown.status).toBe(404);
  await expectEnvelope(unknown, 'RESOURCE_NOT_FOUND');
});

it('GET mint-requests lists each mint request once, in order, even if requests are stored out of order', async () => {
  const api = await openChainApi({ MINTS_LISTED_AFTER_MS: 1500 });
  const body = { assets: [{ reference_id: 'template', owner_address: `0x${'ab'.repeat(20)}` }] };
  await api.call(MINTS, { body });
  const template = toRequestedState(api.minting.requests[0]!);
  const requestedAt = Date.now();
  const stateOf = (referenceId: string, at: number): MintState => ({
    ...template,
    referenceId,
    attemptId: String(at).repeat(32),
    requestedAt: requestedAt + at,
    changedAt: requestedAt + at,
  });
  const listed: string[] = [];
  let cursor = '';
  const poll = async () => {
    const response = await api.call(`${MINTS}?page_size=2${cursor === '' ? '' : `&page_cursor=${cursor}`}`);
    const { result, page } = (await response.json()) as ListPage;
    listed.push(...result.map(({ reference_id }) => reference_id));
    cursor = page.next_cursor;
  };
  api.minting.reader.put(stateOf('third', 3));
  await poll();
  api.minting.reader.put(stateOf('second', 2));
  await poll();
  api.minting.reader.put(stateOf('first', 1));
  await until('all requests are listed', async () => {
    await poll();
    return listed.includes('third');
  });
  await poll();
  expect(listed).toEqual(['first', 'second', 'third']);
});

it('POST mint-requests publishes the requests and returns 202 with the quota in body and headers', async () => {
  const api = await openChainApi();
  const response = await api.call(MINTS, {
    body: { assets: [asset('sword-1', { token_id: '7', amount: '1', metadata: { name: 'Sword', extra: 1 } })] },
  });
  expect(response.status).toBe(202);
  const body = (await response.json()) as Record<string, string>;
  expect(body).toEqual({
    imx_mint_requests_limit: '2000',
    imx_mint_requests_limit_reset: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    imx_remaining_mint_requests: '1999',
    imx_mint_requests_retry_after: '0',
  });
  for (const [name, value] of Object.entries(body)) expect(response.headers.get(name.replaceAll('_', '-'))).toBe(value);
  const [request] = api.minting.requests;
  expect(toSignerKey(request!)).toBe(`demo-chain:${SIGNER}`);
  expect(request).toMatchObject({
    referenceId: 'sword-1',
    projectId: 'demo',
    environmentId: 'demo-development',
    tokenId: '7',
    amount: '1',
    metadata: '{"name":"Sword"}',
    traceId: response.headers.get('x-trace-id'),
  });
  expect(`0x${request!.ownerAddress.toString('hex')}`).toBe(OWNER.toLowerCase());
});

it('POST mint-requests accepts a body with a UTF-8 byte order mark', async () => {
  const api = await openChainApi();
  expect((await api.call(MINTS, { body: `\ufeff${JSON.stringify(mintBody('marked'))}` })).status).toBe(202);
  expect(api.minting.requests.map(({ referenceId }) => referenceId)).toEqual(['marked']);
});

it('POST mint-requests counts each distinct token id once', async () => {
  const api = await openChainApi();
  const assets = ['a', 'b', 'c'].map((id) => asset(id, { token_id: id === 'c' ? '2' : '1' }));
  const response = await api.call(MINTS, { body: { assets } });
  expect(response.headers.get('imx-remaining-mint-requests')).toBe('1998');
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
  await api.call(MINTS, { body: mintBody('a') });
  expect(requests[0]!.signer.toString('hex')).toBe('aa'.repeat(20));
});

it.each([MINTS, `/${COLLECTION}/refresh-metadata`, `/${COLLECTION}/nfts/refresh-metadata`])(
  'POST %s returns 400 with the error position for malformed JSON',
  async (path) => {
    const api = await openChainApi();
    const response = await api.call(path, { body: '{"assets":\n[NaN]}' });
    expect(response.status).toBe(400);
    await expectEnvelope(response, 'VALIDATION_ERROR', { offset: 12, line: 2, column: 2, found: 'NaN' });
  },
);

it('POST mint-requests returns 400 and explains the fix if the environment has no signing key', async () => {
  const api = await openChainApi();
  api.minting.signableKeys.length = 0;
  const response = await api.call(MINTS, { body: mintBody('a') });
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({ message: expect.stringMatching(/create a signable key under Keys/) });
});

it.each([
  ['another project', OTHER_PROJECT],
  ['another environment of the project', OTHER_ENVIRONMENT],
])('POST mint-requests returns 403 for a collection in %s', async (_owner, contract) => {
  const api = await openChainApi();
  const response = await api.call(`/${contract}/nfts/mint-requests`, { body: mintBody('a') });
  expect(response.status).toBe(403);
  await expectEnvelope(response, 'AUTHENTICATION_ERROR');
  expect(api.minting.requests).toEqual([]);
});

it.each([
  ['was unlinked', UNLINKED],
  ['was never linked', `0x${'99'.repeat(20)}`],
])('POST mint-requests returns 404 for a collection that %s', async (_state, contract) => {
  const api = await openChainApi();
  const response = await api.call(`/${contract}/nfts/mint-requests`, { body: mintBody('a') });
  expect(response.status).toBe(404);
  await expectEnvelope(response, 'RESOURCE_NOT_FOUND');
  expect(api.minting.requests).toEqual([]);
});

it('a new owner of a collection cannot see earlier mint requests and can reuse their reference ids', async () => {
  const api = await openChainApi();
  const { minting } = api;
  await api.call(MINTS, { body: mintBody('own') });
  const former = toRequestedState(minting.requests[0]!);
  for (const [index, owner] of [
    { projectId: 'former', environmentId: 'former-production' },
    { projectId: 'demo', environmentId: 'demo-production' },
  ].entries())
    minting.reader.put({ ...former, ...owner, referenceId: `former-${index}`, attemptId: String(index).repeat(32) });
  minting.reader.put(former);
  await minting.mints.view.restore([
    { ...former, projectId: 'former', referenceId: 'known', attemptId: '2'.repeat(32), error: 'secret' },
  ]);
  const list = (await (await api.call(MINTS)).json()) as { result: { reference_id: string }[] };
  expect(list.result.map(({ reference_id }) => reference_id)).toEqual(['own']);
  for (const id of ['former-0', 'former-1', 'known']) {
    const response = await api.call(`${MINTS}/${id}`);
    expect(response.status).toBe(404);
    await expectEnvelope(response, 'RESOURCE_NOT_FOUND');
  }
  expect((await api.call(MINTS, { body: mintBody('known') })).status).toBe(202);
});

it('GET mint-requests returns 404 while the outcome of a mint request is unknown', async () => {
  const api = await openChainApi();
  api.minting.broker = 'down';
  await api.call(MINTS, { body: mintBody('a') });
  expect((await api.call(`${MINTS}/a`)).status).toBe(404);
});

it('POST mint-requests returns 409 with all used and duplicate reference ids and accepts no asset', async () => {
  const api = await openChainApi();
  await api.call(MINTS, { body: mintBody('a', 'b') });
  const response = await api.call(MINTS, { body: mintBody('c', 'a', 'd', 'b', 'd') });
  expect(response.status).toBe(409);
  await expectEnvelope(response, 'CONFLICT_ERROR', { id: 'reference_id', values: ['a', 'b', 'd'] });
  expect(api.minting.requests).toHaveLength(2);
  const rest = await api.call(MINTS, { body: mintBody('c', 'd') });
  expect(rest.headers.get('imx-remaining-mint-requests')).toBe('1996');
});

it('POST mint-requests checks reference ids before the signing key', async () => {
  const api = await openChainApi();
  await api.call(MINTS, { body: mintBody('a') });
  api.minting.signableKeys.length = 0;
  const response = await api.call(MINTS, { body: mintBody('a', 'b') });
  expect(response.status).toBe(409);
  await expectEnvelope(response, 'CONFLICT_ERROR', { id: 'reference_id', values: ['a'] });
});

/** Sends the headers and the first bytes of a body with the maximum size. */
function sendPartially({ url, minting }: Pick<TestChainApi, 'url' | 'minting'>, bytes: number): ClientRequest {
  const contentHeaders = { 'content-type': 'application/json', 'content-length': MINT_BODY_BYTES_MAX };
  const headers = { ...contentHeaders, [SECRET_KEY_HEADER]: minting.secretKey };
  const sending = request(`${url}/v1/chains/demo-chain/collections${MINTS}`, { method: 'POST', headers });
  sending.on('error', () => {});
  sending.flushHeaders();
  sending.write(Buffer.alloc(bytes, ' '));
  return sending;
}

it('POST mint-requests returns 429 with the quota headers and Retry-After after the burst is used up', async () => {
  const api = await openChainApi({ MINTS_BURST: 100, MINTS_PER_MINUTE: 1 });
  const ids = Array.from({ length: 100 }, (_, index) => `id-${index}`);
  expect((await api.call(MINTS, { body: mintBody(...ids) })).status).toBe(202);
  const response = await api.call(MINTS, { body: mintBody('one', 'two') });
  expect(response.status).toBe(429);
  expect(response.headers.get('retry-after')).toBe(response.headers.get('imx-mint-requests-retry-after'));
  expect(response.headers.get('imx-remaining-mint-requests')).toBe('0');
  expect(response.headers.get('imx-mint-requests-limit')).toBe('100');
  expect(response.headers.get('imx-mint-requests-limit-reset')).toMatch(/Z$/);
  await expectEnvelope(response, 'TOO_MANY_REQUESTS_ERROR');
  expect(api.minting.requests).toHaveLength(100);
  expect((await api.call(MINTS, { body: mintBody('id-1') })).status).toBe(409);
});

it.each([
  ['mint-requests', MINTS, 'imx-remaining-mint-requests', 'imx-mint-requests-limit-reset'],
  ['refresh-metadata', `/${COLLECTION}/refresh-metadata`, 'imx-remaining-refreshes', 'imx-refresh-limit-reset'],
])('a 429 from the call limit has the quota headers of %s', async (_operation, path, remaining, reset) => {
  const api = await openChainApi({ RATE_LIMIT_CALLS: 1 });
  await api.call(path, { body: mintBody('a') });
  const response = await api.call(path, { body: mintBody('b') });
  expect(response.status).toBe(429);
  expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(response.headers.get(remaining)).toBe('0');
  expect(response.headers.get(reset)).toMatch(/Z$/);
  const retryAfter = path === MINTS ? 'imx-mint-requests-retry-after' : 'retry-after';
  expect(response.headers.get(retryAfter)).toBe(response.headers.get('retry-after'));
});

it('bodies that never arrive do not cause a 429 for other requests', async () => {
  const api = await openChainApi();
  const hanging = Array.from({ length: 20 }, () => sendPartially(api, 1));
  await Promise.all(hanging.map((sending) => new Promise((resolve) => sending.once('socket', resolve))));
  for (let id = 0; id < 20; id++) expect((await api.call(MINTS, { body: mintBody(`id-${id}`) })).status).toBe(202);
  for (const sending of hanging) sending.destroy();
});

it('a 429 caused by the memory limit for bodies shows the remaining quota', async () => {
  const api = await openChainApi({ MINTS_BURST: 100 });
  expect((await api.call(MINTS, { body: mintBody('first') })).status).toBe(202);
  const hanging = Array.from({ length: 16 }, () => sendPartially(api, MINT_BODY_BYTES_MAX - 1));
  let response: Response | null = null;
  let attempts = 0;
  await until('the memory limit is reached', async () => {
    response = await api.call(MINTS, { body: mintBody(`id-${attempts++}`) });
    return response.status === 429;
  });
  const { headers } = response as unknown as Response;
  expect(headers.get('imx-remaining-mint-requests')).toBe(String(100 - attempts));
  expect(headers.get('imx-mint-requests-retry-after')).toBe(headers.get('retry-after'));
  for (const sending of hanging) sending.destroy();
});

it('retrying a mint request with an unknown outcome continues the same attempt', async () => {
  const api = await openChainApi();
  const { minting } = api;
  minting.broker = 'ack-lost';
  expect((await api.call(MINTS, { body: mintBody('a', 'b') })).status).toBe(500);
  minting.signableKeys.splice(0, 1, signableKeyRecord(`0x${'77'.repeat(20)}`));
  minting.broker = 'up';
  const retried = await api.call(MINTS, { body: mintBody('a', 'b') });
  expect(retried.status).toBe(202);
  expect(retried.headers.get('imx-remaining-mint-requests')).toBe('1998');
  const [first, , second] = minting.requests;
  expect(second).toEqual({ ...first, traceId: second!.traceId });
  expect((await api.call(MINTS, { body: mintBody('a') })).status).toBe(409);
});

it('POST mint-requests returns 500, not 409, for a reference id whose earlier outcome is unknown', async () => {
  const api = await openChainApi();
  api.minting.broker = 'down';
  await api.call(MINTS, { body: mintBody('a') });
  api.minting.broker = 'up';
  const other = { body: { assets: [asset('a', { token_id: '9' })] } };
  expect((await api.call(MINTS, other)).status).toBe(500);
  api.minting.isLogApplied = true;
  expect((await api.call(MINTS, other)).status).toBe(500);
  expect(api.minting.requests).toEqual([]);
});

it('mint requests and lookups return 500 while claims may be missing', async () => {
  const api = await openChainApi();
  await api.call(MINTS, { body: mintBody('a') });
  api.minting.mints.restart({ isEmptied: true });
  expect((await api.call(MINTS, { body: mintBody('a') })).status).toBe(500);
  expect((await api.call(`${MINTS}/a`)).status).toBe(500);
});
