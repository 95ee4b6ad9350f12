import { randomUUID } from 'node:crypto';
import type { ActivityRow, TokenRow } from '@playline/chain';
import type { ActivityType } from '@playline/contracts';
import { CHAIN, PARTITION } from './open-chain-api.ts';

/** Noon on an arbitrary day, in epoch microseconds. */
export const NOON_US = Date.UTC(2026, 10, 22, 12) * 1000;
export const NOON = '2026-11-22T12:00:00.000000Z';

export const addressOf = (number: number): string => `0x${number.toString(16).padStart(40, '0')}`;

const logged = { partition: PARTITION, offset: 0, loggedAtMs: NOON_US / 1000, traceId: 'ab'.repeat(16) };
const nft = { contract_type: 'ERC721', contract_address: addressOf(1), token_id: '7', amount: '1' };

export const DETAILS: Readonly<Record<ActivityType, Readonly<Record<string, unknown>>>> = {
  mint: { to: addressOf(10), amount: '1', asset: nft },
  burn: { from: addressOf(10), amount: '1', asset: nft },
  transfer: { from: addressOf(10), to: addressOf(11), amount: '1', asset: nft },
  deposit: { to: addressOf(10), amount: '1000', asset: { contract_type: 'ERC20', contract_address: addressOf(2) } },
  withdrawal: { from: addressOf(10), amount: '1', asset: { ...nft, contract_type: 'ERC1155' } },
  sale: {
    order_id: '018f-order',
    to: addressOf(10),
    from: addressOf(11),
    asset: [nft],
    payment: {
      token: { contract_type: 'NATIVE', symbol: 'ETH' },
      price_excluding_fees: '100',
      price_including_fees: '105',
      fees: [{ amount: '5', type: 'ROYALTY', recipient: addressOf(12) }],
    },
  },
};

/** Creates an activity that was updated `after` microseconds after noon, unless `overrides` contain another time. */
export function activityRow({ after = 0, ...overrides }: Partial<ActivityRow> & { after?: number } = {}): ActivityRow {
  const { type = 'mint' } = overrides;
  return {
    ...logged,
    chain: CHAIN.name,
    id: randomUUID(),
    type,
    contractAddress: addressOf(1),
    indexedAt: NOON_US + after,
    updatedAt: NOON_US + after,
    blockchainMetadata: {
      transactionHash: `0x${'cd'.repeat(32)}`,
      blockNumber: '18446744073709551615',
      transactionIndex: '0',
      logIndex: '3',
    },
    details: JSON.stringify(DETAILS[type]),
    ...overrides,
  };
}

export function tokenRow(overrides: Partial<TokenRow> = {}): TokenRow {
  return {
    ...logged,
    chain: CHAIN.name,
    contractAddress: addressOf(2),
    updatedAt: NOON_US,
    rootContractAddress: addressOf(3),
    symbol: 'GOLD',
    decimals: 18,
    imageUrl: 'https://images.test/gold.png',
    name: 'Gold',
    verificationStatus: 'verified',
    isCanonical: true,
    rootChainId: 'eip155:1',
    bridgeUsed: 'demo-bridge',
    ...overrides,
  };
}
