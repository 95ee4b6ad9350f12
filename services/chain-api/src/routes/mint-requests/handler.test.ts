import { type ClientRequest, request } from 'node:http';
import { toSignerKey } from '@playline/contracts';
import { MINT_BODY_BYTES_MAX, type MintState, toRequestedState } from '@playline/mints';
import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import {
  asset,
  COLLECTION,
  ELSEWHERE,
  MINTS,
  OTHER_PROJECT,
  OWNER,
  order,
  SECRET_KEY_HEADER,
  SIGNER,
  signableKeyRecord,
  UNLINKED,
} from '../../test/minting-world.ts';
import { expectEnvelope, openChainApi, type TestChainApi } from '../../test/open-chain-api.ts';

interface ShownPage {
  readonly result: readonly { readonly reference_id: string }[];
  readonly page: { readonly next_cursor: string };
}

it('an accepted mint request is found immediately by GET', async () => {
  const api = await openChainApi();
  await api.call(MINTS, { body: order('sword 1/ä') });
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

it('a reader of the list gets each mint request once, also those stored after a later one', async () => {
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
  const seen: string[] = [];
  let cursor = '';
  const poll = async () => {
    const answer = await api.call(`${MINTS}?page_size=2${cursor === '' ? '' : `&page_cursor=${cursor}`}`);
    const { result, page } = (await answer.json()) as ShownPage;
    seen.push(...result.map(({ reference_id }) => reference_id));
    cursor = page.next_cursor;
  };
  // The last request is in the tables first; the two before it are not yet.
  api.minting.reader.put(stateOf('third', 3));
  await poll();
  api.minting.reader.put(stateOf('second', 2));
  await poll();
  api.minting.reader.put(stateOf('first', 1));
  await until('all are seen', async () => {
    await poll();
    return seen.includes('third');
  });
  await poll();
  expect(seen).toEqual(['first', 'second', 'third']);
});

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
  expect(await answer.json()).toMatchObject({ message: expect.stringMatching(/create a signable key in the portal/) });
});

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

/** Announces the largest permitted body and sends so many of its bytes, at most all but one. */
function sendPart({ url, minting }: Pick<TestChainApi, 'url' | 'minting'>, bytes: number): ClientRequest {
  const sent = { 'content-type': 'application/json', 'content-length': MINT_BODY_BYTES_MAX };
  const headers = { ...sent, [SECRET_KEY_HEADER]: minting.secretKey };
  const sending = request(`${url}/v1/chains/demo-chain/collections${MINTS}`, { method: 'POST', headers });
  sending.on('error', () => {});
  sending.flushHeaders();
  sending.write(Buffer.alloc(bytes, ' '));
  return sending;
}

it('POST mint-requests answers 429 beyond the burst, with header fields of the quota and Retry-After', async () => {
  const api = await openChainApi({ MINTS_BURST: 100, MINTS_PER_MINUTE: 1 });
  const ids = Array.from({ length: 100 }, (_, at) => `id-${at}`);
  expect((await api.call(MINTS, { body: order(...ids) })).status).toBe(202);
  const answer = await api.call(MINTS, { body: order('one', 'two') });
  expect(answer.status).toBe(429);
  expect(answer.headers.get('retry-after')).toBe(answer.headers.get('imx-mint-requests-retry-after'));
  expect(answer.headers.get('imx-remaining-mint-requests')).toBe('0');
  expect(answer.headers.get('imx-mint-requests-limit')).toBe('100');
  expect(answer.headers.get('imx-mint-requests-limit-reset')).toMatch(/Z$/);
  await expectEnvelope(answer, 'TOO_MANY_REQUESTS_ERROR');
  expect(api.minting.requests).toHaveLength(100);
  expect((await api.call(MINTS, { body: order('id-1') })).status).toBe(409);
});

it.each([
  ['mint-requests', MINTS, 'imx-remaining-mint-requests', 'imx-mint-requests-limit-reset'],
  ['refresh-metadata', `/${COLLECTION}/refresh-metadata`, 'imx-remaining-refreshes', 'imx-refresh-limit-reset'],
])('a refusal of the limit of calls has the header fields of %s', async (_what, path, remaining, reset) => {
  const api = await openChainApi({ RATE_LIMIT_CALLS: 1 });
  await api.call(path, { body: order('a') });
  const answer = await api.call(path, { body: order('b') });
  expect(answer.status).toBe(429);
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(answer.headers.get(remaining)).toBe('0');
  expect(answer.headers.get(reset)).toMatch(/Z$/);
  const retryAfter = path === MINTS ? 'imx-mint-requests-retry-after' : 'retry-after';
  expect(answer.headers.get(retryAfter)).toBe(answer.headers.get('retry-after'));
});

it('announced bodies that do not arrive cause no 429', async () => {
  const api = await openChainApi();
  const hanging = Array.from({ length: 20 }, () => sendPart(api, 1));
  await Promise.all(hanging.map((each) => new Promise((resolve) => each.once('socket', resolve))));
  for (let at = 0; at < 20; at++) expect((await api.call(MINTS, { body: order(`id-${at}`) })).status).toBe(202);
  for (const each of hanging) each.destroy();
});

it('a 429 without memory for bodies shows the remaining quota', async () => {
  const api = await openChainApi({ MINTS_BURST: 100 });
  expect((await api.call(MINTS, { body: order('first') })).status).toBe(202);
  const hanging = Array.from({ length: 16 }, () => sendPart(api, MINT_BODY_BYTES_MAX - 1));
  let answer: Response | null = null;
  let tries = 0;
  await until('there is no memory', async () => {
    answer = await api.call(MINTS, { body: order(`id-${tries++}`) });
    return answer.status === 429;
  });
  const { headers } = answer as unknown as Response;
  expect(headers.get('imx-remaining-mint-requests')).toBe(String(100 - tries));
  expect(headers.get('imx-mint-requests-retry-after')).toBe(headers.get('retry-after'));
  for (const each of hanging) each.destroy();
});

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
