import type { MintScope } from './asset.ts';
import type { MintState } from './states.ts';

export interface WantedClaim {
  readonly referenceId: string;
  /** 32 lower-case hexadecimal digits. Not used if the request reuses an existing claim. */
  readonly attemptId: string;
  readonly signer: string;
  readonly digest: string;
}

/** A claim whose values the request must use, even if another process created the claim. */
export interface GrantedClaim {
  readonly referenceId: string;
  readonly attemptId: string;
  readonly signer: string;
  /** In epoch milliseconds, later than any failed attempt. */
  readonly requestedAt: number;
}

/** A claim for a different asset. The log may or may not contain its request. */
export interface UnknownClaim {
  readonly referenceId: string;
  readonly attemptId: string;
  /** In epoch milliseconds, by the store's clock. */
  readonly claimedAt: number;
  readonly ageMs: number;
}

export type ClaimOutcome =
  | { readonly kind: 'claimed'; readonly claims: readonly GrantedClaim[] }
  /** Some assets are pending or minted. Nothing was claimed. */
  | { readonly kind: 'taken'; readonly referenceIds: readonly string[] }
  /** Some claims have an unknown outcome. Nothing was claimed. */
  | { readonly kind: 'unknown'; readonly claims: readonly UnknownClaim[] }
  /** `PENDING_LIMITS` would be exceeded. Nothing was claimed. `cleanedAt` is set if `clean` is due. */
  | { readonly kind: 'full'; readonly cleanedAt: number | null }
  /** `FAILED_PER_HOUR_MAX` would be exceeded. Nothing was claimed. */
  | { readonly kind: 'failing'; readonly waitMs: number };

/** Limits a project's memory in Redis and in the minter. */
export interface AssetLimits {
  readonly assets: number;
  /** Each asset counts as 1,000 bytes plus four times the length of the claim's key. */
  readonly bytes: number;
}

/** Five quota bursts per environment. One environment alone cannot reach the project's limit. */
export const PENDING_LIMITS: { readonly environment: AssetLimits; readonly project: AssetLimits } = {
  environment: { assets: 10_000, bytes: 16 * 1024 * 1024 },
  project: { assets: 20_000, bytes: 32 * 1024 * 1024 },
};

/** Limits on a project's latest settled assets. Earlier assets are read from the tables. */
export const SETTLED_LIMITS: AssetLimits = { assets: 5_000, bytes: 8 * 1024 * 1024 };

/** A failed asset costs little quota and no gas, but its state stays on the log. */
export const FAILED_PER_HOUR_MAX = 20_000;

export interface FoundState {
  /** If null, the tables may still contain the state. */
  readonly state: MintState | null;
  /** If false, there may be a request even though the state is null. */
  readonly isComplete: boolean;
}

/** Claims on reference ids. An id is claimed before its request is published, and confirmed afterwards. */
export interface MintClaims {
  /** Claims all reference ids or none. `isDryRun` only checks them. @throws IncompleteClaimsFault */
  claim(
    scope: MintScope & { readonly environmentId: string },
    wanted: readonly WantedClaim[],
    options?: { isDryRun?: boolean },
  ): Promise<ClaimOutcome>;
  /** Records that the requests are on the log. @returns the reference ids that another attempt has claimed */
  confirm(scope: MintScope, states: readonly MintState[]): Promise<readonly string[]>;
  /** Releases a claim unless it has changed or was confirmed. */
  lapse(scope: MintScope, claim: Pick<UnknownClaim, 'referenceId' | 'attemptId' | 'claimedAt'>): Promise<void>;
  /** Releases a project's unconfirmed claims up to a time (null for none), and stops counting expired claims. */
  clean(projectId: string, claimedUntil: number | null): Promise<void>;
  read(scope: MintScope, referenceId: string): Promise<FoundState>;
}

/** The store was emptied or restarted and has not been restored from the log yet. */
export class IncompleteClaimsFault extends Error {
  override readonly name = 'IncompleteClaimsFault';

  constructor() {
    super('claims may be missing because the log has not been read since the store started; retry later');
  }
}
