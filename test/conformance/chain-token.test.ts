// Contract, table "Token" and chain reads, on one token.
import { VERIFICATION_STATUSES } from '@playline/contracts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CHAIN } from '../../services/chain-api/src/test/open-chain-api.ts';
import { addressOf, NOON_US, tokenRow } from '../../services/chain-api/src/test/rows.ts';
import { type ConformanceChainApi, expectChainFault, startChainApi } from './chain-api.ts';
import { START_MAX_MS } from './gateway.ts';

let api: ConformanceChainApi;
beforeAll(async () => {
  api = await startChainApi();
}, START_MAX_MS);
afterAll(() => api.close());

let numbers = 1000;
/** Stores a new token, and returns the `result` of the answer for it. */
async function answerFor(over: Parameters<typeof tokenRow>[0]): Promise<Record<string, unknown>> {
  const { contractAddress, ...row } = tokenRow({ contractAddress: addressOf(numbers++), ...over });
  await api.putTokens({ ...row, contractAddress });
  const answer = await api.get(`/tokens/${contractAddress}`);
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { result: Record<string, unknown> }).result;
}

it('a token has every field of the contract, and no other', async () => {
  const contractAddress = addressOf(1);
  expect(await answerFor({ contractAddress })).toEqual({
    chain: CHAIN,
    contract_address: contractAddress,
    root_contract_address: addressOf(3),
    symbol: 'GOLD',
    decimals: 18,
    image_url: 'https://images.test/gold.png',
    name: 'Gold',
    verification_status: 'verified',
    updated_at: '2026-11-22T12:00:00.000000Z',
    is_canonical: true,
    root_chain_id: 'eip155:1',
    bridge_used: 'demo-bridge',
  });
});

it.each([
  ['root_contract_address', 'rootContractAddress'],
  ['symbol', 'symbol'],
  ['decimals', 'decimals'],
  ['image_url', 'imageUrl'],
  ['name', 'name'],
  ['root_chain_id', 'rootChainId'],
  ['bridge_used', 'bridgeUsed'],
])('%s of a token may be null, and is then there as null', async (field, member) => {
  expect(await answerFor({ [member]: null })).toHaveProperty(field, null);
});

it.each(VERIFICATION_STATUSES)('verification_status of a token may be %s', async (verificationStatus) => {
  expect(await answerFor({ verificationStatus })).toMatchObject({ verification_status: verificationStatus });
});

it('bridge_used of a token is free text', async () => {
  expect(await answerFor({ bridgeUsed: 'any bridge — 橋' })).toMatchObject({ bridge_used: 'any bridge — 橋' });
});

it('decimals of a token are a number from 0 on, is_canonical a boolean', async () => {
  expect(await answerFor({ decimals: 0, isCanonical: false })).toMatchObject({ decimals: 0, is_canonical: false });
});

it.each([
  [0, '2026-11-22T12:00:00.000000Z'],
  [123_456, '2026-11-22T12:00:00.123456Z'],
  [1_500_000, '2026-11-22T12:00:01.500000Z'],
])('updated_at of a token has six fractional digits and Z: %i µs behind noon', async (after, text) => {
  expect(await answerFor({ updatedAt: NOON_US + after })).toMatchObject({ updated_at: text });
});

it('contract_address of a token is compared case-insensitively and returned in lower case', async () => {
  const contractAddress = '0xabcdefabcdef0123456789abcdef0123456789ab';
  await api.putTokens(tokenRow({ contractAddress }));
  for (const spelling of [contractAddress, `0x${contractAddress.slice(2).toUpperCase()}`]) {
    const answer = await api.get(`/tokens/${spelling}`);
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({ result: { contract_address: contractAddress } });
  }
});

it.each(['0x12', addressOf(1).slice(2), `${addressOf(1)}0`, '0x'.padEnd(42, 'z'), 'native'])(
  'contract_address of a token that is not 0x and 40 hexadecimal digits (%s): 400 VALIDATION_ERROR',
  async (address) => expectChainFault(await api.get(`/tokens/${address}`), 400, 'VALIDATION_ERROR'),
);

it('a token that is unknown: 404 RESOURCE_NOT_FOUND', async () => {
  await expectChainFault(await api.get(`/tokens/${addressOf(999)}`), 404, 'RESOURCE_NOT_FOUND');
});

it('a token of a chain that is unknown: 404 RESOURCE_NOT_FOUND', async () => {
  const answer = await fetch(`${api.url}/v1/chains/unknown-chain/tokens/${addressOf(1)}`);
  await expectChainFault(answer, 404, 'RESOURCE_NOT_FOUND');
});
