import { createHash } from 'node:crypto';

export interface MintCollection {
  readonly chain: string;
  /** In lower case, with `0x`. */
  readonly contractAddress: string;
}

/** Each project has its own reference ids. */
export interface MintScope extends MintCollection {
  readonly projectId: string;
}

export interface MintAsset {
  readonly referenceId: string;
  /** In lower case, with `0x`. */
  readonly ownerAddress: string;
  /** Decimal digits, or null if the contract chooses the id. */
  readonly tokenId: string | null;
  /** Decimal digits, or null for an ERC-721. */
  readonly amount: string | null;
  /** A JSON object as a string. */
  readonly metadata: string | null;
}

const DIGEST_CHARACTERS = 32;

/** Distinguishes a retry from a different request with the same reference id. */
export function digestOf({ ownerAddress, tokenId, amount, metadata }: MintAsset): string {
  const text = JSON.stringify([ownerAddress, tokenId, amount, metadata]);
  return createHash('sha256').update(text).digest('hex').slice(0, DIGEST_CHARACTERS);
}

/** Counts each distinct token id once, plus all assets without a token id. */
export function countTokens(assets: readonly Pick<MintAsset, 'tokenId'>[]): number {
  const ids = new Set(assets.flatMap(({ tokenId }) => (tokenId === null ? [] : [tokenId])));
  return ids.size + assets.filter(({ tokenId }) => tokenId === null).length;
}
