import { createHash } from 'node:crypto';
import type { MintRequestRecord } from '@playline/contracts';

export const CHAIN = 'demo-chain';
export const SIGNER = Buffer.from('51'.repeat(20), 'hex');
export const SWORDS = `0x${'a1'.repeat(20)}`;
export const SHIELDS = `0x${'a2'.repeat(20)}`;
export const POTIONS = `0x${'a3'.repeat(20)}`;

export const CONTRACTS = new Map([
  [SWORDS, 'ERC721'],
  [SHIELDS, 'ERC721'],
  [POTIONS, 'ERC1155'],
] as const);
/** The second signer is the collection's previous signer. */
export const SIGNERS = [SIGNER, Buffer.from('52'.repeat(20), 'hex')] as const;
export const toAddress = (bytes: Buffer): string => `0x${bytes.toString('hex')}`;
export const toBytes = (hex: string): Buffer => Buffer.from(hex.slice(2), 'hex');
export const ownerOf = (number: number): string => `0x${(number + 1).toString(16).padStart(40, '0')}`;

/** Creates a request for an asset. By default, requests one sword without a token id. */
export function toRequest(
  referenceId: string,
  {
    contract = SWORDS,
    owner = ownerOf(0),
    attempt = 0,
    ...overrides
  }: Partial<MintRequestRecord> & { contract?: string; owner?: string; attempt?: number } = {},
): MintRequestRecord {
  return {
    chain: CHAIN,
    contractAddress: toBytes(contract),
    referenceId,
    signer: SIGNER,
    projectId: 'demo',
    attemptId: createHash('sha256').update(`${contract}:${referenceId}:${attempt}`).digest().subarray(0, 16),
    environmentId: 'demo-development',
    ownerAddress: toBytes(owner),
    tokenId: null,
    amount: null,
    metadata: null,
    requestedAt: 1_000,
    traceId: '0'.repeat(32),
    ...overrides,
  };
}
