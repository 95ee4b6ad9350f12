// Contract, mints and metadata: the three operations for metadata, with their statuses, limits and headers, up to the
// tables.
import { until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { expectChainFault } from './chain-api.ts';
import { START_MAX_MS } from './gateway.ts';
import { type MintingSystem, readFault, startMinting } from './minting.ts';

let system: MintingSystem;
beforeAll(async () => {
  system = await startMinting({ REFRESHES_PER_HOUR: '260' });
}, START_MAX_MS);
afterAll(() => system.close());

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

it('metadata of a collection: 200 with address, chain and the given metadata; later metadata replaces earlier metadata', async () => {
  const contract = await system.link();
  for (const name of ['Axes', 'Swords']) {
    const body = { collection_metadata: { ...COLLECTION, name } };
    const answer = await system.call(`/${contract.toUpperCase().replace('0X', '0x')}/refresh-metadata`, { body });
    expect(answer.status).toBe(200);
    expect(await answer.json()).toEqual({
      contract_address: contract,
      chain: { id: 'eip155:31337', name: 'demo-chain' },
      collection_metadata: { ...COLLECTION, name },
    });
    for (const header of HEADERS) expect(answer.headers.get(header), header).toMatch(/\d/);
  }
  const kept = `SELECT metadata FROM collections FINAL WHERE contract = unhex('${contract.slice(2)}')`;
  await until('the last is stored', async () =>
    (await system.rows<{ metadata: string }>(kept))[0]?.metadata.includes('Swords'),
  );
});

it('metadata of tokens and stacks: 202 with four values, all strings, the same as headers', async () => {
  const contract = await system.link();
  const lists = [
    ['/metadata/refresh-metadata', { metadata: [{ metadata_id: METADATA_ID, ...TOKEN }] }],
    ['/nfts/refresh-metadata', { nft_metadata: [{ token_id: '7', ...TOKEN }] }],
  ] as const;
  for (const [path, body] of lists) {
    const answer = await system.call(`/${contract}${path}`, { body });
    expect(answer.status).toBe(202);
    const values = (await answer.json()) as Record<string, string>;
    expect(values).toEqual({
      imx_refreshes_limit: '260',
      imx_refresh_limit_reset: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      imx_remaining_refreshes: expect.stringMatching(/^\d+$/),
      retry_after: '0',
    });
    for (const [name, value] of Object.entries(values))
      expect(answer.headers.get(name.replaceAll('_', '-'))).toBe(value);
  }
  const where = `WHERE contract = unhex('${contract.slice(2)}')`;
  const kept = async () => [
    ...(await system.rows<{ id: string; metadata: string }>(
      `SELECT token_id AS id, metadata FROM nft_metadata FINAL ${where}`,
    )),
    ...(await system.rows<{ id: string; metadata: string }>(
      `SELECT metadata_id AS id, metadata FROM metadata_stacks FINAL ${where}`,
    )),
  ];
  await until('both are stored', async () => (await kept()).length === 2);
  expect((await kept()).map(({ id, metadata }) => [id, JSON.parse(metadata)])).toEqual([
    ['7', TOKEN],
    [METADATA_ID, TOKEN],
  ]);
});

it('metadata of a body above 228 KiB: 400 that names the limit', async () => {
  const contract = await system.link();
  const answer = await system.call(`/${contract}/nfts/refresh-metadata`, {
    body: { nft_metadata: [{ token_id: '7', ...TOKEN, description: 'a'.repeat(228 * 1024) }] },
  });
  expect(answer.status).toBe(400);
  expect(await answer.json()).toMatchObject({ code: 'VALIDATION_ERROR', details: { limitBytes: 228 * 1024 } });
});

it.each(['/refresh-metadata', '/metadata/refresh-metadata', '/nfts/refresh-metadata'])(
  'metadata at %s: 400 without a key, 401 with a wrong one, 403 for a collection of another project, 404 for one that is not linked',
  async (path) => {
    const contract = await system.link();
    const body = {};
    await expectChainFault(
      await system.call(`/${contract}${path}`, { body, headers: { 'x-service-api-key': '' } }),
      400,
      'VALIDATION_ERROR',
    );
    const unauthorised = await system.call(`/${contract}${path}`, {
      body,
      headers: { 'x-service-api-key': system.keys.publishable },
    });
    expect(await readFault(unauthorised)).toMatchObject({ status: 401, code: 'UNAUTHORISED_REQUEST' });
    const foreign = await system.call(`/${contract}${path}`, {
      body,
      headers: { 'x-service-api-key': system.keys.other },
    });
    expect(await readFault(foreign)).toMatchObject({ status: 403, code: 'AUTHENTICATION_ERROR' });
    await expectChainFault(await system.call(`/0x${'99'.repeat(20)}${path}`, { body }), 404, 'RESOURCE_NOT_FOUND');
    await expectChainFault(await system.call(`/${contract}${path}`, { body }), 400, 'VALIDATION_ERROR');
  },
);

it('metadata beyond the project’s hourly limit: 429 with three headers and Retry-After, in each of the three operations', async () => {
  const contract = await system.link();
  const nft_metadata = Array.from({ length: 250 }, (_, at) => ({ token_id: String(at), ...TOKEN }));
  await until('the hour is used up', async () => {
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
    const answer = await system.call(`/${contract}${path}`, { body });
    for (const header of [...HEADERS, 'retry-after']) expect(answer.headers.get(header), header).toMatch(/\d/);
    await expectChainFault(answer, 429, 'TOO_MANY_REQUESTS_ERROR');
  }
});
