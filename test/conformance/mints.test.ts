// Contract, "Mints and metadata": the six operations with their statuses, limits and headers, and the records that they
// write to the log, the tables and Redis.
import { until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { expectChainError } from './chain-api.ts';
import { START_MAX_MS } from './gateway.ts';
import { createAsset, type MintingSystem, OWNER, readError, startMinting } from './minting.ts';

let system: MintingSystem;
beforeAll(async () => {
  system = await startMinting({ REFRESHES_PER_HOUR: '260' });
}, START_MAX_MS);
afterAll(() => system.close());

interface MintList {
  readonly result: readonly Readonly<Record<string, unknown>>[];
  readonly page: { readonly previous_cursor: string; readonly next_cursor: string };
}

async function readList(path: string): Promise<MintList> {
  const response = await system.call(path);
  expect(response.status).toBe(200);
  return (await response.json()) as MintList;
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;

it('an accepted mint request is readable immediately, appears in the list, and receives the minter’s result', async () => {
  const mints = `/${await system.link()}/nfts/mint-requests`;
  const asset = createAsset({ token_id: '7', amount: '2', metadata: { name: 'Sword' } });
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
  const mint = `${mints}/${asset.reference_id}`;
  expect((await readList(mint)).result).toEqual([shown]);
  await until('the request is in the list', async () => (await readList(mints)).result.length === 1);
  expect((await readList(mints)).result).toEqual([shown]);
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
  const isDone = async (path: string) => (await readList(path)).result[0]?.status === 'succeeded';
  await until('the request has the minter’s result', () => isDone(mint));
  await until('the list has the minter’s result', () => isDone(mints));
  expect((await readList(mint)).result).toEqual([succeeded]);
  expect((await readList(mints)).result).toEqual([succeeded]);
});

it('a failed mint request contains the reason, and its reference id can be reused for a new attempt', async () => {
  const mints = `/${await system.link()}/nfts/mint-requests`;
  const asset = createAsset();
  await system.call(mints, { body: { assets: [asset] } });
  const [request] = (await system.requests()).filter(({ referenceId }) => referenceId === asset.reference_id);
  expect((await system.call(mints, { body: { assets: [asset] } })).status).toBe(409);
  await system.publishState(request!, {
    revision: 1,
    status: 'failed',
    stage: 'settled',
    error: 'token already minted',
  });
  const mint = `${mints}/${asset.reference_id}`;
  await until('the request has failed', async () => (await readList(mint)).result[0]?.status === 'failed');
  expect((await readList(mint)).result[0]).toMatchObject({ error: { message: 'token already minted' } });
  expect((await system.call(mints, { body: { assets: [asset] } })).status).toBe(202);
  expect((await readList(mint)).result[0]).toMatchObject({ status: 'pending', error: null });
  await until('the list has only the second attempt', async () => {
    const { result } = await readList(mints);
    return result.length === 1 && result[0]?.status === 'pending';
  });
  await until('both attempts are stored', async () => {
    const rows = await system.rows<{ n: string }>(
      `SELECT uniqExact(attempt_id) AS n FROM mint_requests WHERE reference_id = '${asset.reference_id}'`,
    );
    return rows[0]?.n === '2';
  });
});

const path = '/nfts/mint-requests';

it('a mint request returns 400 without a key, and 401 with a malformed, unknown or publishable key', async () => {
  const contract = await system.link();
  const body = { assets: [createAsset()] };
  const codeOf = async (key: string, sent: unknown = body) => {
    const response = await system.call(`/${contract}${path}`, { body: sent, headers: { 'x-service-api-key': key } });
    return [response.status, ((await response.json()) as { code: string }).code];
  };
  expect(await codeOf('')).toEqual([400, 'VALIDATION_ERROR']);
  const unknown = `sk_svcapik_test-${'a'.repeat(36)}`;
  for (const key of ['hello', unknown, system.keys.publishable])
    for (const sent of [body, undefined]) expect(await codeOf(key, sent)).toEqual([401, 'UNAUTHORISED_REQUEST']);
});

it('a mint request returns 400 with all validation errors, and also 400 for an unreadable or oversized body', async () => {
  const mints = `/${await system.link()}${path}`;
  const invalid = await system.call(mints, { body: { assets: [createAsset({ token_id: 1, owner_address: 'me' })] } });
  expect(invalid.status).toBe(400);
  expect((await readError(invalid)).details?.errors?.map(({ field }) => field)).toEqual([
    'assets[0].owner_address',
    'assets[0].token_id',
  ]);
  expect((await system.call(mints, { body: '{' })).status).toBe(400);
  expect((await system.call(mints, { body: { assets: [] }, headers: { 'content-type': 'text/plain' } })).status).toBe(
    400,
  );
  const large = await system.call(mints, { body: JSON.stringify({ assets: ['a'.repeat(2 << 20)] }) });
  expect(await readError(large)).toMatchObject({ status: 400, details: { limitBytes: 2 << 20 } });
  expect((await system.call(`/0x12${path}`, { body: {} })).status).toBe(400);
});

it('the list of mint requests can be paged in both directions and contains each request once, in order of acceptance', async () => {
  const mints = `/${await system.link()}/nfts/mint-requests`;
  const assets = Array.from({ length: 25 }, () => createAsset());
  for (let start = 0; start < 25; start += 5)
    await system.call(mints, { body: { assets: assets.slice(start, start + 5) } });
  await until('all requests are in the list', async () => (await readList(mints)).result.length === 25);
  const allIds = (await readList(mints)).result.map(({ reference_id }) => reference_id);
  expect(allIds.toSorted()).toEqual(assets.map(({ reference_id }) => reference_id).toSorted());
  const forwards: unknown[] = [];
  let page = await readList(`${mints}?page_size=4`);
  while (page.result.length > 0) {
    forwards.push(...page.result.map(({ reference_id }) => reference_id));
    page = await readList(`${mints}?page_size=4&page_cursor=${page.page.next_cursor}`);
  }
  expect(forwards).toEqual(allIds);
  const backwards: unknown[] = [];
  for (;;) {
    page = await readList(`${mints}?page_size=7&page_cursor=${page.page.previous_cursor}`);
    if (page.result.length === 0) break;
    backwards.unshift(...page.result.map(({ reference_id }) => reference_id));
  }
  expect(backwards).toEqual(allIds);
});

it('the list of mint requests can be filtered by status, and its cursors are valid only for the same collection and status', async () => {
  const mints = `/${await system.link()}/nfts/mint-requests`;
  const otherMints = `/${await system.link()}/nfts/mint-requests`;
  const assets = [createAsset(), createAsset()];
  await system.call(mints, { body: { assets } });
  const request = (await system.requests()).find(({ referenceId }) => referenceId === assets[0]!.reference_id)!;
  await system.publishState(request, { revision: 1, status: 'failed', stage: 'settled', error: 'no' });
  const idsOf = async (query: string) => (await readList(mints + query)).result.map(({ reference_id }) => reference_id);
  await until('one request has failed', async () => (await idsOf('?status=failed')).length === 1);
  expect(await idsOf('?status=failed')).toEqual([assets[0]!.reference_id]);
  expect(await idsOf('?status=pending')).toEqual([assets[1]!.reference_id]);
  const empty = await readList(`${mints}?status=succeeded`);
  expect(empty).toMatchObject({
    result: [],
    page: { next_cursor: expect.any(String), previous_cursor: expect.any(String) },
  });
  for (const target of [`${mints}?status=failed`, `${mints}?`, `${otherMints}?status=succeeded`])
    expect((await system.call(`${target}&page_cursor=${empty.page.next_cursor}`)).status).toBe(400);
});

it.each(['page_size=0', 'page_size=201', 'page_size=x', 'page_cursor=x', 'status=done', 'status=failed&status=failed'])(
  'the list of mint requests with %s returns 400 VALIDATION_ERROR',
  async (query) => {
    const response = await system.call(`/${await system.link()}/nfts/mint-requests?${query}`);
    expect(await readError(response)).toMatchObject({ status: 400, code: 'VALIDATION_ERROR' });
  },
);

const COLLECTION = {
  name: 'Swords',
  symbol: 'SWORD',
  description: null,
  image: null,
  external_link: null,
  contract_uri: null,
  base_uri: null,
};
const TOKEN = {
  name: 'Sword',
  description: null,
  image: null,
  external_url: null,
  animation_url: null,
  youtube_url: null,
  attributes: [{ trait_type: 'Power', value: 7, display_type: 'number' }],
};
const METADATA_ID = '018f3a5c-7c1e-7d2a-9b1e-3f4a5b6c7d8e';
const HEADERS = ['imx-refreshes-limit', 'imx-refresh-limit-reset', 'imx-remaining-refreshes'];

it('a collection metadata refresh returns 200 with the metadata, and later metadata replaces earlier metadata', async () => {
  const contract = await system.link();
  for (const name of ['Axes', 'Swords']) {
    const body = { collection_metadata: { ...COLLECTION, name } };
    const response = await system.call(`/${contract.toUpperCase().replace('0X', '0x')}/refresh-metadata`, { body });
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({
      contract_address: contract,
      chain: { id: 'eip155:31337', name: 'demo-chain' },
      collection_metadata: { ...COLLECTION, name },
    });
    for (const header of HEADERS) expect(response.headers.get(header), header).toMatch(/\d/);
  }
  const query = `SELECT metadata FROM collections FINAL WHERE contract = unhex('${contract.slice(2)}')`;
  await until('the last metadata is stored', async () =>
    (await system.rows<{ metadata: string }>(query))[0]?.metadata.includes('Swords'),
  );
});

it('a token or stack metadata refresh returns 202 with four strings that are also sent as headers', async () => {
  const contract = await system.link();
  const lists = [
    ['/metadata/refresh-metadata', { metadata: [{ metadata_id: METADATA_ID, ...TOKEN }] }],
    ['/nfts/refresh-metadata', { nft_metadata: [{ token_id: '7', ...TOKEN }] }],
  ] as const;
  for (const [path, body] of lists) {
    const response = await system.call(`/${contract}${path}`, { body });
    expect(response.status).toBe(202);
    const values = (await response.json()) as Record<string, string>;
    expect(values).toEqual({
      imx_refreshes_limit: '260',
      imx_refresh_limit_reset: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      imx_remaining_refreshes: expect.stringMatching(/^\d+$/),
      retry_after: '0',
    });
    for (const [name, value] of Object.entries(values))
      expect(response.headers.get(name.replaceAll('_', '-'))).toBe(value);
  }
  const where = `WHERE contract = unhex('${contract.slice(2)}')`;
  const readStored = async () => [
    ...(await system.rows<{ id: string; metadata: string }>(
      `SELECT token_id AS id, metadata FROM nft_metadata FINAL ${where}`,
    )),
    ...(await system.rows<{ id: string; metadata: string }>(
      `SELECT metadata_id AS id, metadata FROM metadata_stacks FINAL ${where}`,
    )),
  ];
  await until('token and stack metadata are stored', async () => (await readStored()).length === 2);
  expect((await readStored()).map(({ id, metadata }) => [id, JSON.parse(metadata)])).toEqual([
    ['7', TOKEN],
    [METADATA_ID, TOKEN],
  ]);
});

it('a metadata refresh of more than 228 KiB returns 400 with the limit', async () => {
  const contract = await system.link();
  const response = await system.call(`/${contract}/nfts/refresh-metadata`, {
    body: { nft_metadata: [{ token_id: '7', ...TOKEN, description: 'a'.repeat(228 * 1024) }] },
  });
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({ code: 'VALIDATION_ERROR', details: { limitBytes: 228 * 1024 } });
});

it.each(['/refresh-metadata', '/metadata/refresh-metadata', '/nfts/refresh-metadata'])(
  '%s returns 400 without a key, 401 with a wrong key, 403 for another project’s collection, and 404 for an unlinked collection',
  async (path) => {
    const contract = await system.link();
    const body = {};
    await expectChainError(
      await system.call(`/${contract}${path}`, { body, headers: { 'x-service-api-key': '' } }),
      400,
      'VALIDATION_ERROR',
    );
    const unauthorised = await system.call(`/${contract}${path}`, {
      body,
      headers: { 'x-service-api-key': system.keys.publishable },
    });
    expect(await readError(unauthorised)).toMatchObject({ status: 401, code: 'UNAUTHORISED_REQUEST' });
    const otherProject = await system.call(`/${contract}${path}`, {
      body,
      headers: { 'x-service-api-key': system.keys.other },
    });
    expect(await readError(otherProject)).toMatchObject({ status: 403, code: 'AUTHENTICATION_ERROR' });
    await expectChainError(await system.call(`/0x${'99'.repeat(20)}${path}`, { body }), 404, 'RESOURCE_NOT_FOUND');
    await expectChainError(await system.call(`/${contract}${path}`, { body }), 400, 'VALIDATION_ERROR');
  },
);

it('metadata refreshes above the project’s hourly limit return 429 with three headers and Retry-After', async () => {
  const contract = await system.link();
  const nft_metadata = Array.from({ length: 250 }, (_, index) => ({ token_id: String(index), ...TOKEN }));
  await until('the hourly limit is reached', async () => {
    const { status } = await system.call(`/${contract}/nfts/refresh-metadata`, { body: { nft_metadata } });
    const rest = await system.call(`/${contract}/refresh-metadata`, { body: { collection_metadata: COLLECTION } });
    return status === 429 && rest.status === 429;
  });
  const metadata = Array.from({ length: 10 }, () => ({ metadata_id: METADATA_ID, ...TOKEN }));
  for (const [path, body] of [
    ['/refresh-metadata', { collection_metadata: COLLECTION }],
    ['/metadata/refresh-metadata', { metadata }],
    ['/nfts/refresh-metadata', { nft_metadata }],
  ] as const) {
    const response = await system.call(`/${contract}${path}`, { body });
    for (const header of [...HEADERS, 'retry-after']) expect(response.headers.get(header), header).toMatch(/\d/);
    await expectChainError(response, 429, 'TOO_MANY_REQUESTS_ERROR');
  }
});
