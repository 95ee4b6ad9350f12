// Contract, mints and metadata, on mint requests: the log, the tables and Redis.
import { until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { START_MAX_MS } from './gateway.ts';
import { assetOf, type MintingSystem, OWNER, readFault, startMinting } from './minting.ts';

let system: MintingSystem;
beforeAll(async () => {
  system = await startMinting();
}, START_MAX_MS);
afterAll(() => system.close());

interface Shown {
  readonly result: readonly Readonly<Record<string, unknown>>[];
  readonly page: { readonly previous_cursor: string; readonly next_cursor: string };
}

async function readShown(path: string): Promise<Shown> {
  const answer = await system.call(path);
  expect(answer.status).toBe(200);
  return (await answer.json()) as Shown;
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;

it('a mint request is accepted, can be found immediately, is on the log and in the list, and has every member, including the minter’s result', async () => {
  const mints = `/${await system.link()}/nfts/mint-requests`;
  const asset = assetOf({ token_id: '7', amount: '2', metadata: { name: 'Sword' } });
  expect((await system.call(mints, { body: { assets: [asset] } })).status).toBe(202);
  const shown = {
    chain: { id: 'eip155:31337', name: 'demo-chain' },
    collection_address: mints.split('/')[1],
    reference_id: asset.reference_id,
    owner_address: OWNER,
    status: 'pending',
    token_id: '7',
    amount: '2',
    activity_id: null,
    transaction_hash: null,
    error: null,
    created_at: expect.stringMatching(TIME),
    updated_at: expect.stringMatching(TIME),
  };
  const one = `${mints}/${asset.reference_id}`;
  expect((await readShown(one)).result).toEqual([shown]);
  await until('it is in the list', async () => (await readShown(mints)).result.length === 1);
  expect((await readShown(mints)).result).toEqual([shown]);
  const request = (await system.requests()).find(({ referenceId }) => referenceId === asset.reference_id)!;
  const activityId = Buffer.from('018f3a5c7c1e7d2a9b1e3f4a5b6c7d8e', 'hex');
  await system.publishState(request, { revision: 1 });
  await system.publishState(request, {
    revision: 2,
    status: 'succeeded',
    stage: 'settled',
    nonce: 3,
    activityId,
    transactionHash: Buffer.alloc(32, 0xcd),
  });
  const succeeded = {
    ...shown,
    status: 'succeeded',
    activity_id: '018f3a5c-7c1e-7d2a-9b1e-3f4a5b6c7d8e',
    transaction_hash: `0x${'cd'.repeat(32)}`,
  };
  const isDone = async (path: string) => (await readShown(path)).result[0]?.status === 'succeeded';
  await until('it shows the result of the minter', () => isDone(one));
  await until('so does the list', () => isDone(mints));
  expect((await readShown(one)).result).toEqual([succeeded]);
  expect((await readShown(mints)).result).toEqual([succeeded]);
});

it('a mint request that failed has the reason, and its reference id may be used again; the request with that id is then the new attempt', async () => {
  const mints = `/${await system.link()}/nfts/mint-requests`;
  const asset = assetOf();
  await system.call(mints, { body: { assets: [asset] } });
  const [request] = (await system.requests()).filter(({ referenceId }) => referenceId === asset.reference_id);
  expect((await system.call(mints, { body: { assets: [asset] } })).status).toBe(409);
  await system.publishState(request!, {
    revision: 1,
    status: 'failed',
    stage: 'settled',
    error: 'token already minted',
  });
  const one = `${mints}/${asset.reference_id}`;
  await until('it failed', async () => (await readShown(one)).result[0]?.status === 'failed');
  expect((await readShown(one)).result[0]).toMatchObject({ error: { message: 'token already minted' } });
  expect((await system.call(mints, { body: { assets: [asset] } })).status).toBe(202);
  expect((await readShown(one)).result[0]).toMatchObject({ status: 'pending', error: null });
  await until('the list shows the second alone', async () => {
    const { result } = await readShown(mints);
    return result.length === 1 && result[0]?.status === 'pending';
  });
  await until('both attempts are kept', async () => {
    const rows = await system.rows<{ n: string }>(
      `SELECT uniqExact(attempt_id) AS n FROM mint_requests WHERE reference_id = '${asset.reference_id}'`,
    );
    return rows[0]?.n === '2';
  });
});

const path = '/nfts/mint-requests';

it('mint requests are answered with 400 without a key, 401 for one that is malformed, unknown or publishable', async () => {
  const contract = await system.link();
  const body = { assets: [assetOf()] };
  const codeOf = async (key: string, sent: unknown = body) => {
    const answer = await system.call(`/${contract}${path}`, { body: sent, headers: { 'x-service-api-key': key } });
    return [answer.status, ((await answer.json()) as { code: string }).code];
  };
  expect(await codeOf('')).toEqual([400, 'VALIDATION_ERROR']);
  const unknown = `sk_svcapik_test-${'a'.repeat(36)}`;
  for (const key of ['hello', unknown, system.keys.publishable])
    for (const sent of [body, undefined]) expect(await codeOf(key, sent)).toEqual([401, 'UNAUTHORISED_REQUEST']);
});

it('mint requests are answered with 403 for the key of another project, 404 for an unknown chain or a collection that is not linked', async () => {
  const contract = await system.link();
  const other = { 'x-service-api-key': system.keys.other };
  for (const body of [{ assets: [assetOf()] }, undefined]) {
    const foreign = await system.call(`/${contract}${path}`, { body, headers: other });
    expect(await readFault(foreign)).toMatchObject({ status: 403, code: 'AUTHENTICATION_ERROR' });
    const unlinked = await system.call(`/0x${'99'.repeat(20)}${path}`, { body });
    expect(await readFault(unlinked)).toMatchObject({ status: 404, code: 'RESOURCE_NOT_FOUND' });
    const elsewhere = await system.call(`/../../other-chain/collections/${contract}${path}`, { body });
    expect(elsewhere.status).toBe(404);
  }
});

it('mint requests are answered with 409 with every reference id that is pending, minted or twice in the request, and nothing of the request is accepted', async () => {
  const mints = `/${await system.link()}${path}`;
  const [first, second, third] = [assetOf(), assetOf(), assetOf()];
  await system.call(mints, { body: { assets: [first, second] } });
  const answer = await system.call(mints, { body: { assets: [third, second, third, first] } });
  expect(answer.status).toBe(409);
  const { code, details } = (await answer.json()) as { code: string; details: { id: string; values: string[] } };
  expect([code, details.id]).toEqual(['CONFLICT_ERROR', 'reference_id']);
  expect(details.values.toSorted()).toEqual([first, second, third].map(({ reference_id }) => reference_id).toSorted());
  expect((await system.call(`${mints}/${third.reference_id}`)).status).toBe(404);
  const again = await system.call(mints, { body: { assets: [third] } });
  expect(again.status).toBe(202);
});

it('mint requests are answered with 400 with everything that is wrong, for a body that cannot be read, and for one above its limit', async () => {
  const mints = `/${await system.link()}${path}`;
  const wrong = await system.call(mints, { body: { assets: [assetOf({ token_id: 1, owner_address: 'me' })] } });
  expect(wrong.status).toBe(400);
  expect((await readFault(wrong)).details?.errors?.map(({ field }) => field)).toEqual([
    'assets[0].owner_address',
    'assets[0].token_id',
  ]);
  expect((await system.call(mints, { body: '{' })).status).toBe(400);
  expect((await system.call(mints, { body: { assets: [] }, headers: { 'content-type': 'text/plain' } })).status).toBe(
    400,
  );
  const large = await system.call(mints, { body: JSON.stringify({ assets: ['a'.repeat(2 << 20)] }) });
  expect(await readFault(large)).toMatchObject({ status: 400, details: { limitBytes: 2 << 20 } });
  expect((await system.call(`/0x12${path}`, { body: {} })).status).toBe(400);
});

it('the list of mint requests is read in pages of page_size in both directions, in the order of acceptance, each request once', async () => {
  const mints = `/${await system.link()}/nfts/mint-requests`;
  const assets = Array.from({ length: 25 }, () => assetOf());
  for (let at = 0; at < 25; at += 5) await system.call(mints, { body: { assets: assets.slice(at, at + 5) } });
  await until('all are in the list', async () => (await readShown(mints)).result.length === 25);
  const whole = (await readShown(mints)).result.map(({ reference_id }) => reference_id);
  expect(whole.toSorted()).toEqual(assets.map(({ reference_id }) => reference_id).toSorted());
  const forwards: unknown[] = [];
  let page = await readShown(`${mints}?page_size=4`);
  while (page.result.length > 0) {
    forwards.push(...page.result.map(({ reference_id }) => reference_id));
    page = await readShown(`${mints}?page_size=4&page_cursor=${page.page.next_cursor}`);
  }
  expect(forwards).toEqual(whole);
  const backwards: unknown[] = [];
  for (;;) {
    page = await readShown(`${mints}?page_size=7&page_cursor=${page.page.previous_cursor}`);
    if (page.result.length === 0) break;
    backwards.unshift(...page.result.map(({ reference_id }) => reference_id));
  }
  expect(backwards).toEqual(whole);
});

it('the list of mint requests can be filtered by status, and always has two cursors, which are valid only for their collection and status', async () => {
  const mints = `/${await system.link()}/nfts/mint-requests`;
  const other = `/${await system.link()}/nfts/mint-requests`;
  const assets = [assetOf(), assetOf()];
  await system.call(mints, { body: { assets } });
  const request = (await system.requests()).find(({ referenceId }) => referenceId === assets[0]!.reference_id)!;
  await system.publishState(request, { revision: 1, status: 'failed', stage: 'settled', error: 'no' });
  const idsOf = async (query: string) =>
    (await readShown(mints + query)).result.map(({ reference_id }) => reference_id);
  await until('one has failed', async () => (await idsOf('?status=failed')).length === 1);
  expect(await idsOf('?status=failed')).toEqual([assets[0]!.reference_id]);
  expect(await idsOf('?status=pending')).toEqual([assets[1]!.reference_id]);
  const empty = await readShown(`${mints}?status=succeeded`);
  expect(empty).toMatchObject({
    result: [],
    page: { next_cursor: expect.any(String), previous_cursor: expect.any(String) },
  });
  for (const target of [`${mints}?status=failed`, `${mints}?`, `${other}?status=succeeded`])
    expect((await system.call(`${target}&page_cursor=${empty.page.next_cursor}`)).status).toBe(400);
});

it.each(['page_size=0', 'page_size=201', 'page_size=x', 'page_cursor=x', 'status=done', 'status=failed&status=failed'])(
  'the list of mint requests with %s: 400 VALIDATION_ERROR',
  async (query) => {
    const answer = await system.call(`/${await system.link()}/nfts/mint-requests?${query}`);
    expect(await readFault(answer)).toMatchObject({ status: 400, code: 'VALIDATION_ERROR' });
  },
);
