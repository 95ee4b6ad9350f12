import { expect, it } from 'vitest';
import { asset, COLLECTION, MINTS, SECRET_KEY_HEADER } from './test/minting-world.ts';
import { openChainApi } from './test/open-chain-api.ts';

/** A known address with one character in another case. */
const WRONG = '0xF39fd6e51aad88f6f4ce6ab8827279cfffb92266';

it.each([
  ['the owner of an asset to mint', `/collections${MINTS}`, { assets: [asset('a', { owner_address: WRONG })] }],
  ['the collection of a mint', `/collections/${WRONG}/nfts/mint-requests`, { assets: [asset('a')] }],
  ['the collection of a list of mint requests', `/collections/${WRONG}/nfts/mint-requests`, undefined],
  ['the collection of a refresh', `/collections/${WRONG}/refresh-metadata`, {}],
  ['the contract of a history', `/activity-history?contract_address=${WRONG}`, undefined],
  ['a token', `/tokens/${WRONG}`, undefined],
])('an address with a wrong EIP-55 checksum is refused with 400 as %s', async (_what, path, body) => {
  const api = await openChainApi();
  const answer = await fetch(`${api.url}/v1/chains/demo-chain${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { [SECRET_KEY_HEADER]: api.minting.secretKey, 'content-type': 'application/json' },
    body: body === undefined ? null : JSON.stringify(body),
  });
  expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining('EIP-55')]);
  expect(api.minting.requests).toEqual([]);
});

it('an address is accepted in all upper and all lower case', async () => {
  const api = await openChainApi();
  for (const [at, address] of [WRONG.toLowerCase(), `0x${WRONG.slice(2).toUpperCase()}`].entries()) {
    const body = { assets: [asset(String(at), { owner_address: address })] };
    expect((await api.call(MINTS, { body })).status).toBe(202);
    expect((await api.call(`/0x${COLLECTION.slice(2).toUpperCase()}/nfts/mint-requests`)).status).toBe(200);
  }
});
