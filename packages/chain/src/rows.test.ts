import type { ActivityRecord, TokenRecord } from '@playline/contracts';
import { expect, it } from 'vitest';
import { MICROSECONDS_MAX } from './cursor.ts';
import { findChanged, partOfActivity, toActivityRow, toTokenRow } from './rows.ts';
import { activityRow, addressOf, NOON_US } from './test/rows.ts';

const version = { updatedAt: NOON_US, partition: 1, offset: 2, loggedAtMs: NOON_US / 1_000 };
const asset = { contract_type: 'ERC20', contract_address: `0x${'01'.repeat(20)}` };
const details = { to: `0x${'02'.repeat(20)}`, amount: '1', asset };
const activity: ActivityRecord = {
  chain: 'main',
  id: Buffer.alloc(16, 0xab),
  type: 'mint',
  contractAddress: Buffer.alloc(20, 1),
  indexedAt: 5,
  blockchainMetadata: null,
  details: JSON.stringify(details),
  traceId: '',
};
const token: TokenRecord = {
  chain: 'main',
  contractAddress: Buffer.alloc(20, 1),
  rootContractAddress: null,
  symbol: null,
  decimals: null,
  imageUrl: null,
  name: null,
  verificationStatus: 'verified',
  isCanonical: true,
  rootChainId: null,
  bridgeUsed: null,
  traceId: '',
};
const block = { transactionHash: Buffer.alloc(32), blockNumber: '1', transactionIndex: '0', logIndex: null };

it('an activity row contains its id, addresses and hashes in lower case', () => {
  const row = toActivityRow({ ...activity, blockchainMetadata: block }, version);
  expect(row).toMatchObject({ id: 'abababab-abab-abab-abab-abababababab', contractAddress: `0x${'01'.repeat(20)}` });
  expect(row.blockchainMetadata?.transactionHash).toBe(`0x${'00'.repeat(32)}`);
});

it('an activity row contains exactly the members of its type, in a fixed order', () => {
  const { to, amount } = details;
  const nested = `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`;
  const recorded = `{"note":${nested},"asset":${JSON.stringify(asset)},"amount":"${amount}","to":"${to.toUpperCase().replace('0X', '0x')}"}`;
  expect(toActivityRow({ ...activity, details: recorded }, version).details).toBe(JSON.stringify(details));
});

it.each<[string, Partial<ActivityRecord>]>([
  ['an invalid chain name', { chain: 'Main/1' }],
  ['an empty chain name', { chain: '' }],
  ['an unknown type', { type: 'gift' as 'mint' }],
  ['an indexed_at before 1970', { indexedAt: -1 }],
  ['details that are not JSON', { details: '{' }],
  ['details that are not an object', { details: '[]' }],
  ['details that are null', { details: 'null' }],
  ['details that lack a member of the type', { details: JSON.stringify({ ...details, to: undefined }) }],
  ['details for another type', { type: 'burn' }],
  ['deeply nested details', { details: `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}` }],
  ['a contract that differs from the asset contract', { contractAddress: Buffer.alloc(20, 2) }],
  ['a block number with a leading zero', { blockchainMetadata: { ...block, blockNumber: '01' } }],
  ['a log index of 2^64', { blockchainMetadata: { ...block, logIndex: String(2n ** 64n) } }],
])('an activity with %s cannot be converted to a row', (_what, overrides) => {
  expect(() => toActivityRow({ ...activity, ...overrides }, version)).toThrow(RangeError);
});

it.each<[string, Partial<TokenRecord>]>([
  ['an invalid chain name', { chain: 'a b' }],
  ['an unknown status', { verificationStatus: 'maybe' as 'spam' }],
  ['more than 255 decimals', { decimals: 256 }],
  ['negative decimals', { decimals: -1 }],
])('a token with %s cannot be converted to a row', (_what, overrides) => {
  expect(() => toTokenRow({ ...token, ...overrides }, version)).toThrow(RangeError);
});

it('a record with an updated_at out of range cannot be converted to a row', () => {
  for (const updatedAt of [-1, 0.5, Number.NaN, MICROSECONDS_MAX + 1])
    expect(() => toActivityRow(activity, { ...version, updatedAt })).toThrow(RangeError);
});

it('an update may change any member except the members that readers can filter by', () => {
  const row = activityRow();
  expect(findChanged(row, { ...row, updatedAt: NOON_US + 1, details: '{"a":1}' } as typeof row)).toEqual([]);
  const other = { chain: 'other', type: 'burn' as const, contractAddress: addressOf(9), indexedAt: 1 };
  expect(findChanged(row, { ...row, ...other })).toEqual(['chain', 'type', 'contractAddress', 'indexedAt']);
  expect(findChanged(row, { ...row, indexedAt: row.indexedAt + 1 })).toEqual(['indexedAt']);
});

it.each([
  ['2026-01-31T23:59:59.999Z', 202_601],
  ['2026-02-01T00:00:00.000Z', 202_602],
  ['2026-12-31T23:59:59.999Z', 202_612],
])('the ClickHouse partition for an activity at %s is the month in UTC', (time, part) => {
  expect(partOfActivity({ updatedAt: Date.parse(time) * 1_000 + 999 })).toBe(part);
});
