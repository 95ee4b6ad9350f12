import { randomUUID } from 'node:crypto';
import { ACTIVITY_TYPES, VERIFICATION_STATUSES } from '@playline/contracts';
import { codePoint } from '@playline/testkit/code-point';
import fc from 'fast-check';
import { MICROSECONDS_MAX } from '../cursor.ts';
import type { ActivityRow, TokenRow } from '../rows.ts';

export const NOON_US = Date.UTC(2026, 10, 21, 12) * 1_000;

let offset = 0;

export function activityRow(overrides: Partial<ActivityRow> = {}): ActivityRow {
  return {
    chain: 'test-chain',
    id: randomUUID(),
    type: 'mint',
    contractAddress: addressOf(1),
    indexedAt: NOON_US,
    updatedAt: NOON_US,
    blockchainMetadata: null,
    details: '{}',
    traceId: 'ab'.repeat(16),
    loggedAtMs: NOON_US / 1_000,
    partition: 2,
    offset: offset++,
    ...overrides,
  };
}

export const addressOf = (number: number): string => `0x${number.toString(16).padStart(40, '0')}`;

const hex = (digits: number) =>
  fc
    .uint8Array({ minLength: digits / 2, maxLength: digits / 2 })
    .map((bytes) => `0x${Buffer.from(bytes).toString('hex')}`);
const uint64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map(String);
const text = fc.string({ unit: codePoint, maxLength: 20 });
const logged = { loggedAtMs: fc.nat(2 ** 31), partition: fc.nat(65_535), offset: fc.nat(2 ** 31), traceId: text };

export const arbitraryActivity: fc.Arbitrary<Omit<ActivityRow, 'chain' | 'updatedAt'>> = fc.record({
  ...logged,
  id: fc.uuid(),
  type: fc.constantFrom(...ACTIVITY_TYPES),
  contractAddress: hex(40),
  indexedAt: fc.nat(MICROSECONDS_MAX),
  details: fc.json({ noUnicodeString: false }),
  blockchainMetadata: fc.option(
    fc.record({ transactionHash: hex(64), blockNumber: uint64, transactionIndex: uint64, logIndex: fc.option(uint64) }),
  ),
});

export const arbitraryToken: fc.Arbitrary<Omit<TokenRow, 'chain' | 'contractAddress' | 'updatedAt'>> = fc.record({
  ...logged,
  rootContractAddress: fc.option(hex(40)),
  symbol: fc.option(text),
  decimals: fc.option(fc.nat(255)),
  imageUrl: fc.option(text),
  name: fc.option(text),
  verificationStatus: fc.constantFrom(...VERIFICATION_STATUSES),
  isCanonical: fc.boolean(),
  rootChainId: fc.option(text),
  bridgeUsed: fc.option(text),
});
