import { createHash } from 'node:crypto';

export interface MintCollection {
  readonly chain: string;
  /** Lower case, with `0x`. */
  readonly contractAddress: string;
}

/** Each project has its own reference ids. */
export interface MintScope extends MintCollection {
  readonly projectId: string;
}

export interface MintAsset {
  readonly referenceId: string;
  /** Lower case, with `0x`. */
  readonly ownerAddress: string;
  /** Decimal digits; null when the contract chooses. */
  readonly tokenId: string | null;
  /** Decimal digits; null for an ERC-721. */
  readonly amount: string | null;
  /** A JSON object, as a string. */
  readonly metadata: string | null;
}

const DIGEST_CHARACTERS = 32;

/** Distinguishes a repeated request from another request with the same reference id. */
export function digestOf({ ownerAddress, tokenId, amount, metadata }: MintAsset): string {
  const text = JSON.stringify([ownerAddress, tokenId, amount, metadata]);
  return createHash('sha256').update(text).digest('hex').slice(0, DIGEST_CHARACTERS);
}

/** Counts each token id once, and each asset without a token id. */
export function countTokens(assets: readonly Pick<MintAsset, 'tokenId'>[]): number {
  const ids = new Set(assets.flatMap(({ tokenId }) => (tokenId === null ? [] : [tokenId])));
  return ids.size + assets.filter(({ tokenId }) => tokenId === null).length;
}
