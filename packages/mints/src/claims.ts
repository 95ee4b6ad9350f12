import type { MintScope } from './asset.ts';
import type { MintState } from './states.ts';

export interface WantedClaim {
  readonly referenceId: string;
  /** 32 lower-case hexadecimal digits. Not used if an existing claim is taken over. */
  readonly attemptId: string;
  readonly signer: string;
  readonly digest: string;
}

/** The request must have these values, even if another process made the claim. */
export interface GrantedClaim {
  readonly referenceId: string;
  readonly attemptId: string;
  readonly signer: string;
  /** Epoch milliseconds, later than any failed attempt. */
  readonly requestedAt: number;
}

/** A claim for another asset, whose request may or may not be on the log. */
export interface UnknownClaim {
  readonly referenceId: string;
  readonly attemptId: string;
  /** Epoch milliseconds of the store. */
  readonly claimedAt: number;
  readonly ageMs: number;
}

export type ClaimOutcome =
  | { readonly kind: 'claimed'; readonly claims: readonly GrantedClaim[] }
  /** Pending or succeeded; nothing was claimed. */
  | { readonly kind: 'taken'; readonly referenceIds: readonly string[] }
  /** Nothing was claimed. */
  | { readonly kind: 'unknown'; readonly claims: readonly UnknownClaim[] }
  /** Beyond `PENDING_LIMITS`; nothing was claimed. `cleanedAt`: when `clean` is due, at most once a minute. */
  | { readonly kind: 'full'; readonly cleanedAt: number | null }
  /** Beyond `FAILED_PER_HOUR_MAX`; nothing was claimed. */
  | { readonly kind: 'failing'; readonly waitMs: number };

/** Bounds the memory per project in Redis and in a minter. */
export interface AssetLimits {
  readonly assets: number;
  /** Per asset, four times the length of the claim's key, plus 1,000. */
  readonly bytes: number;
}

/** Five bursts of the quota; an environment cannot use up its project's limit. */
export const PENDING_LIMITS: { readonly environment: AssetLimits; readonly project: AssetLimits } = {
  environment: { assets: 10_000, bytes: 16 * 1024 * 1024 },
  project: { assets: 20_000, bytes: 32 * 1024 * 1024 },
};

/** Latest settled assets per project; earlier assets are read from the tables. */
export const SETTLED_LIMITS: AssetLimits = { assets: 5_000, bytes: 8 * 1024 * 1024 };

/** A failed asset costs little quota and no gas, but its state remains on the log. */
export const FAILED_PER_HOUR_MAX = 20_000;

export interface FoundState {
  /** null: the tables may contain the state. */
  readonly state: MintState | null;
  /** False: a null state does not mean that there is no request. */
  readonly isComplete: boolean;
}

/** Claimed reference ids. The log decides: an id is claimed before its request is published, confirmed after. */
export interface MintClaims {
  /** Claims all or none; `isDry` only checks. @throws IncompleteClaimsFault */
  claim(
    scope: MintScope & { readonly environmentId: string },
    wanted: readonly WantedClaim[],
    options?: { isDry?: boolean },
  ): Promise<ClaimOutcome>;
  /** Records that the requests are on the log. @returns reference ids for which only another attempt can be minted */
  confirm(scope: MintScope, states: readonly MintState[]): Promise<readonly string[]>;
  /** Ends a claim that is unchanged and unconfirmed. */
  lapse(scope: MintScope, claim: Pick<UnknownClaim, 'referenceId' | 'attemptId' | 'claimedAt'>): Promise<void>;
  /** Ends a project's unconfirmed claims up to a time (null: none), and stops counting expired claims. */
  clean(projectId: string, claimedUntil: number | null): Promise<void>;
  read(scope: MintScope, referenceId: string): Promise<FoundState>;
}

/** The store was emptied or restarted, and is restored from the log. */
export class IncompleteClaimsFault extends Error {
  override readonly name = 'IncompleteClaimsFault';

  constructor() {
    super('claims of reference ids may be missing: the log has not been read since the store started');
  }
}
