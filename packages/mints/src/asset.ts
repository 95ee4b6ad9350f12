import { createHash } from 'node:crypto';

/** A contract on a chain whose assets are minted. */
export interface MintCollection {
  /** Name of the chain, as in the paths of the interface. */
  readonly chain: string;
  /** `0x` and 40 lower-case hexadecimal digits. */
  readonly contractAddress: string;
}

/** A collection and the project that asks. Reference ids of two projects have nothing to do with each other. */
export interface MintScope extends MintCollection {
  readonly projectId: string;
}

/** An asset to mint, as requested. */
export interface MintAsset {
  /** The caller's id, unique within a project and a collection. */
  readonly referenceId: string;
  /** `0x` and 40 lower-case hexadecimal digits. */
  readonly ownerAddress: string;
  /** Decimal digits; null when the contract chooses. */
  readonly tokenId: string | null;
  /** Decimal digits; null for a single token of an ERC-721. */
  readonly amount: string | null;
  /** JSON text of an object. */
  readonly metadata: string | null;
}

const DIGEST_CHARACTERS = 32;

/** Hash of the requested asset. It tells a repeated request from another request under the same reference id. */
export function digestOf({ ownerAddress, tokenId, amount, metadata }: MintAsset): string {
  const text = JSON.stringify([ownerAddress, tokenId, amount, metadata]);
  return createHash('sha256').update(text).digest('hex').slice(0, DIGEST_CHARACTERS);
}

/** How many tokens a request counts as: each id once, and each asset without an id as one. */
export function countTokens(assets: readonly Pick<MintAsset, 'tokenId'>[]): number {
  const ids = new Set(assets.flatMap(({ tokenId }) => (tokenId === null ? [] : [tokenId])));
  return ids.size + assets.filter(({ tokenId }) => tokenId === null).length;
}
