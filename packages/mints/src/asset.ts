import { createHash } from 'node:crypto';

/** A contract of a chain, whose assets are minted. */
export interface MintCollection {
  /** Name of the chain, as paths say it. */
  readonly chain: string;
  /** `0x` and 40 lower-case hexadecimal digits. */
  readonly contractAddress: string;
}

/** An asset that is to be minted, as it was asked for. */
export interface MintAsset {
  /** What the caller calls it; of one collection. */
  readonly referenceId: string;
  /** `0x` and 40 lower-case hexadecimal digits. */
  readonly ownerAddress: string;
  /** Decimal digits; null: the contract chooses. */
  readonly tokenId: string | null;
  /** Decimal digits; null: one token of an ERC-721. */
  readonly amount: string | null;
  /** JSON text of an object. */
  readonly metadata: string | null;
}

const DIGEST_CHARACTERS = 32;

/** The same for the same asset, asked for again: what tells a resend from another request under the same reference id. */
export function digestOf({ ownerAddress, tokenId, amount, metadata }: MintAsset): string {
  const text = JSON.stringify([ownerAddress, tokenId, amount, metadata]);
  return createHash('sha256').update(text).digest('hex').slice(0, DIGEST_CHARACTERS);
}

/** How many tokens a request counts as: each id once; an asset without one is a token of its own. */
export function countTokens(assets: readonly Pick<MintAsset, 'tokenId'>[]): number {
  const ids = new Set(assets.flatMap(({ tokenId }) => (tokenId === null ? [] : [tokenId])));
  return ids.size + assets.filter(({ tokenId }) => tokenId === null).length;
}
