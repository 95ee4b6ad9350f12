import { expect, it } from 'vitest';
import { asset, COLLECTION, MINTS, SECRET_KEY_HEADER } from './test/minting-world.ts';
import { openChainApi } from './test/open-chain-api.ts';

/** An address whose mixed case does not match its checksum. */
const BAD_CHECKSUM = '0xF39fd6e51aad88f6f4ce6ab8827279cfffb92266';

it.each([
  ['the owner of an asset', `/collections${MINTS}`, { assets: [asset('a', { owner_address: BAD_CHECKSUM })] }],
  ['the collection of a mint request', `/collections/${BAD_CHECKSUM}/nfts/mint-requests`, { assets: [asset('a')] }],
  ['the collection in a list request', `/collections/${BAD_CHECKSUM}/nfts/mint-requests`, undefined],
  ['the collection in a metadata refresh', `/collections/${BAD_CHECKSUM}/refresh-metadata`, {}],
  ['the contract filter of the activity history', `/activity-history?contract_address=${BAD_CHECKSUM}`, undefined],
  ['the address of a token', `/tokens/${BAD_CHECKSUM}`, undefined],
])('the chain API returns 400 if %s has an invalid EIP-55 checksum', async (_field, path, body) => {
  const api = await openChainApi();
  const response = await fetch(`${api.url}/v1/chains/demo-chain${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { [SECRET_KEY_HEADER]: api.minting.secretKey, 'content-type': 'application/json' },
    body: body === undefined ? null : JSON.stringify(body),
  });
  expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('EIP-55')]);
  expect(api.minting.requests).toEqual([]);
});

it('the chain API accepts addresses in upper case and in lower case', async () => {
  const api = await openChainApi();
  for (const [index, address] of [BAD_CHECKSUM.toLowerCase(), `0x${BAD_CHECKSUM.slice(2).toUpperCase()}`].entries()) {
    const body = { assets: [asset(String(index), { owner_address: address })] };
    expect((await api.call(MINTS, { body })).status).toBe(202);
    expect((await api.call(`/0x${COLLECTION.slice(2).toUpperCase()}/nfts/mint-requests`)).status).toBe(200);
  }
});
