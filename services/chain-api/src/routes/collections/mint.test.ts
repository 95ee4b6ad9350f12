import { type ClientRequest, request } from 'node:http';
import { toSignerKey } from '@playline/contracts';
import { MINT_BODY_BYTES_MAX, toRequestedState } from '@playline/mints';
import { until } from '@playline/testkit';
import { describe, expect, it } from 'vitest';
import {
  COLLECTION,
  ELSEWHERE,
  SECRET_KEY_HEADER,
  SIGNER,
  signableKeyRecord,
  THEIRS,
  UNLINKED,
} from '../../test/minting-world.ts';
import { expectEnvelope, openChainApi, type TestChainApi } from '../../test/open-chain-api.ts';

const OWNER = `0x${'Ab'.repeat(20)}`;
const MINTS = `/${COLLECTION}/nfts/mint-requests`;
const asset = (reference_id: string, over: object = {}) => ({ reference_id, owner_address: OWNER, ...over });
const order = (...ids: string[]) => ({ assets: ids.map((id) => asset(id)) });

/** The largest body that is taken is announced, and does not come. */
function sendHeadersOnly({ url, minting }: Pick<TestChainApi, 'url' | 'minting'>): ClientRequest {
  const sent = { 'content-type': 'application/json', 'content-length': MINT_BODY_BYTES_MAX };
  const headers = { ...sent, [SECRET_KEY_HEADER]: minting.secretKey };
  const sending = request(`${url}/v1/chains/demo-chain/collections${MINTS}`, { method: 'POST', headers });
  sending.on('error', () => {});
  sending.flushHeaders();
  return sending;
}

describe('POST mint-requests', () => {
  it('answers 202 with the four values as texts and as headers, once the requests are on the log under their signer', async () => {
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
      ...{ referenceId: 'sword-1', projectId: 'demo', environmentId: 'demo-development' },
      ...{ tokenId: '7', amount: '1', metadata: '{"name":"Sword"}' },
      traceId: answer.headers.get('x-trace-id'),
    });
    expect(request!.ownerAddress.toString('hex')).toBe('ab'.repeat(20));
  });

  it('is found at once by GET', async () => {
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

  it('is 409 with every id that is taken or twice in the request, takes nothing and costs nothing', async () => {
    const api = await openChainApi();
    await api.call(MINTS, { body: order('a', 'b') });
    const answer = await api.call(MINTS, { body: order('c', 'a', 'd', 'b', 'd') });
    expect(answer.status).toBe(409);
    await expectEnvelope(answer, 'CONFLICT_ERROR', { id: 'reference_id', values: ['a', 'b', 'd'] });
    expect(api.minting.requests).toHaveLength(2);
    const rest = await api.call(MINTS, { body: order('c', 'd') });
    expect(rest.headers.get('imx-remaining-mint-requests')).toBe('1996');
  });

  it('is 429 past the burst, with the four headers and Retry-After, and takes nothing', async () => {
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
  ])('is 429 with the headers of %s also past the limit of calls', async (_what, path, remaining, reset) => {
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

  it('is 429 with the headers also while bodies have no room', async () => {
    const api = await openChainApi();
    const hanging = Array.from({ length: 16 }, () => sendHeadersOnly(api));
    let answer: Response | null = null;
    await until('there is no room', async () => {
      answer = await api.call(MINTS, { body: order('a') });
      return answer.status === 429;
    });
    const { headers } = answer as unknown as Response;
    expect(headers.get('imx-remaining-mint-requests')).toBe('0');
    expect(headers.get('imx-mint-requests-retry-after')).toBe(headers.get('retry-after'));
    for (const each of hanging) each.destroy();
  });

  it('counts each token id once', async () => {
    const api = await openChainApi();
    const assets = ['a', 'b', 'c'].map((id) => asset(id, { token_id: id === 'c' ? '2' : '1' }));
    const answer = await api.call(MINTS, { body: { assets } });
    expect(answer.headers.get('imx-remaining-mint-requests')).toBe('1998');
  });

  it('is 400 without a key that signs, in a sentence that says what to do', async () => {
    const api = await openChainApi();
    api.minting.signableKeys.length = 0;
    const answer = await api.call(MINTS, { body: order('a') });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({
      message: expect.stringMatching(/create a signable key in the portal/),
    });
  });

  it('is 409 for what is taken before anybody asks who signs', async () => {
    const api = await openChainApi();
    await api.call(MINTS, { body: order('a') });
    api.minting.signableKeys.length = 0;
    const answer = await api.call(MINTS, { body: order('a', 'b') });
    expect(answer.status).toBe(409);
    await expectEnvelope(answer, 'CONFLICT_ERROR', { id: 'reference_id', values: ['a'] });
  });

  it('is signed for by the oldest live key of the environment', async () => {
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

  it.each([
    ['403 for a collection of another project', THEIRS, 403, 'AUTHENTICATION_ERROR'],
    ['403 for a collection of another environment', ELSEWHERE, 403, 'AUTHENTICATION_ERROR'],
    ['404 for a collection that was unlinked', UNLINKED, 404, 'RESOURCE_NOT_FOUND'],
    ['404 for a collection that nobody has linked', `0x${'99'.repeat(20)}`, 404, 'RESOURCE_NOT_FOUND'],
  ])('is %s', async (_what, contract, status, code) => {
    const api = await openChainApi();
    const answer = await api.call(`/${contract}/nfts/mint-requests`, { body: order('a') });
    expect(answer.status).toBe(status);
    await expectEnvelope(answer, code);
    expect(api.minting.requests).toEqual([]);
  });

  it.each([
    ['400 without a key', {}, 400, 'VALIDATION_ERROR'],
    ['401 with a key that is malformed', { 'x-service-api-key': 'hello' }, 401, 'UNAUTHORISED_REQUEST'],
  ])('is %s', async (_what, headers, status, code) => {
    const api = await openChainApi();
    const sent = { 'content-type': 'application/json', ...headers };
    const url = `${api.url}/v1/chains/demo-chain/collections${MINTS}`;
    const answer = await fetch(url, { method: 'POST', headers: sent, body: JSON.stringify(order('a')) });
    expect(answer.status).toBe(status);
    await expectEnvelope(answer, code, { header: 'x-service-api-key' });
  });
});

describe('a collection that another project had before', () => {
  it('shows its new project none of the former requests, and keeps their reference ids taken', async () => {
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
    const again = await api.call(MINTS, { body: order('known') });
    expect(again.status).toBe(409);
    await expectEnvelope(again, 'CONFLICT_ERROR', { id: 'reference_id', values: ['known'] });
  });
});

describe('a mint request whose fate nobody knows', () => {
  it('is 500, and the same assets again take it over: one attempt on the log, however often', async () => {
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

  it('is not taken by another asset until the log is known: 500, never 409, which would say that it is minted', async () => {
    const api = await openChainApi();
    api.minting.broker = 'away';
    await api.call(MINTS, { body: order('a') });
    api.minting.broker = 'well';
    const other = { body: { assets: [asset('a', { token_id: '9' })] } };
    expect((await api.call(MINTS, other)).status).toBe(500);
    api.minting.isLogKnown = true;
    expect((await api.call(MINTS, other)).status).toBe(500);
    expect(api.minting.requests).toEqual([]);
  });

  it('is not found before it is known', async () => {
    const api = await openChainApi();
    api.minting.broker = 'away';
    await api.call(MINTS, { body: order('a') });
    expect((await api.call(`${MINTS}/a`)).status).toBe(404);
  });

  it('is 500 while claims may be missing, and so is a look at one that is not found', async () => {
    const api = await openChainApi();
    await api.call(MINTS, { body: order('a') });
    api.minting.mints.restart({ isEmptied: true });
    expect((await api.call(MINTS, { body: order('a') })).status).toBe(500);
    expect((await api.call(`${MINTS}/a`)).status).toBe(500);
  });
});
