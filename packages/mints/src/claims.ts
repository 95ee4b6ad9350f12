import type { MintScope } from './asset.ts';
import type { CurrentState, MintState } from './states.ts';

/** A claim to be placed on a reference id. */
export interface WantedClaim {
  readonly referenceId: string;
  /** Id for this acceptance, unless an existing claim is taken over. 32 lower-case hexadecimal digits. */
  readonly attemptId: string;
  /** Address whose transactions would mint it. */
  readonly signer: string;
  /** `digestOf` the asset. */
  readonly digest: string;
}

/** A claim that is placed. The request must have these values, also when another process placed the claim first. */
export interface GrantedClaim {
  readonly referenceId: string;
  readonly attemptId: string;
  readonly signer: string;
  /** Epoch milliseconds. Later than that of any failed attempt before it. */
  readonly requestedAt: number;
}

/** A claim of another asset under the same reference id whose request may or may not be on the log. */
export interface UnknownClaim {
  readonly referenceId: string;
  readonly attemptId: string;
  /** Epoch milliseconds by the clock of the store. */
  readonly claimedAt: number;
  /** Age in milliseconds by the same clock. */
  readonly ageMs: number;
}

export type ClaimOutcome =
  | { readonly kind: 'claimed'; readonly claims: readonly GrantedClaim[] }
  /** These reference ids are pending or have succeeded; nothing was claimed. */
  | { readonly kind: 'taken'; readonly referenceIds: readonly string[] }
  /** Nothing was claimed. */
  | { readonly kind: 'unknown'; readonly claims: readonly UnknownClaim[] }
  /**
   * The environment or its project would have more pending assets than `PENDING_LIMITS` allow; nothing was claimed.
   * `cleanedAt` is the time of the store, in epoch milliseconds, when `clean` is due: at most once a minute.
   */
  | { readonly kind: 'full'; readonly cleanedAt: number | null }
  /** More assets of the project have failed than `FAILED_PER_HOUR_MAX` allows; nothing was claimed. */
  | { readonly kind: 'failing'; readonly waitMs: number };

/** Limits of assets, which bound the memory that one project takes in Redis and in a minter. */
export interface AssetLimits {
  readonly assets: number;
  /** Bytes in Redis, as `pendingBytesOf` counts them. */
  readonly bytes: number;
}

/**
 * Enough for five bursts of the quota. An environment gets half of its project's limit, so that a test environment
 * cannot use up the limit of production.
 */
export const PENDING_LIMITS: { readonly environment: AssetLimits; readonly project: AssetLimits } = {
  environment: { assets: 10_000, bytes: 16 * 1024 * 1024 },
  project: { assets: 20_000, bytes: 32 * 1024 * 1024 },
};

/** Settled assets of a project that are kept, the latest ones; earlier ones are read from the tables. */
export const SETTLED_LIMITS: AssetLimits = { assets: 5_000, bytes: 8 * 1024 * 1024 };

/**
 * Assets of a project that may fail in an hour, after as many at once. A failed asset costs little quota and no gas, but
 * its state stays on the log, which every minter reads at its start.
 */
export const FAILED_PER_HOUR_MAX = 20_000;

/** Bytes of an asset in Redis. The name of its claim is stored four times; all the rest has about a kilobyte. */
export const pendingBytesOf = (claimName: string): number => 4 * Buffer.byteLength(claimName) + 1_000;

/** What the store has of one reference id. */
export interface FoundState {
  /** Null when the store has nothing; the tables may have it. */
  readonly state: MintState | null;
  /**
   * False when data may have been lost, or the reference id is known and only its state was removed. A null state then
   * does not mean that there is no request.
   */
  readonly isComplete: boolean;
}

/**
 * Reference ids that are taken, by project and collection. Claims answer conflicts quickly; the log decides what is
 * minted.
 *
 * A claim is placed before its request is published and confirmed afterwards. In between, the request may or may not be
 * on the log. A repeated request for the same asset takes the claim over, with its attempt and its signer, so that the
 * minter sees two records of one request. Another asset under that reference id waits until the outcome is known.
 */
export interface MintClaims {
  /**
   * Claims all or none, in one step; with `isDry` it only checks. Times are those of the store.
   * @throws IncompleteClaimsFault when claims may have been lost and are not restored yet
   */
  claim(
    scope: MintScope & { readonly environmentId: string },
    wanted: readonly WantedClaim[],
    options?: { isDry?: boolean },
  ): Promise<ClaimOutcome>;
  /**
   * Records that the requests of these claims are on the log.
   * @returns reference ids that have another attempt. Only that one can be minted
   */
  confirm(scope: MintScope, states: readonly MintState[]): Promise<readonly string[]>;
  /** Ends a claim if it is unchanged and unconfirmed. Its reference id is then free, as after a failure. */
  lapse(scope: MintScope, claim: Pick<UnknownClaim, 'referenceId' | 'attemptId' | 'claimedAt'>): Promise<void>;
  /**
   * Ends unconfirmed claims of a project that were placed up to a time of the store; null ends none. Also stops counting
   * claims that have expired.
   */
  clean(projectId: string, claimedUntil: number | null): Promise<void>;
  read(scope: MintScope, referenceId: string): Promise<FoundState>;
}

/** The store was emptied or restarted, so claims may be missing. They are restored from the log without an operator. */
export class IncompleteClaimsFault extends Error {
  override readonly name = 'IncompleteClaimsFault';

  constructor() {
    super('claims of reference ids may be missing: the log is not read yet since the store was started');
  }
}

/** Verdict on a claim for a reference id. */
export type ClaimVerdict = 'free' | 'taken over' | 'unknown' | 'taken';

/** The current state of a reference id, with the further fields of a claim. */
export interface StoredClaim extends CurrentState {
  readonly digest: string;
  /** Epoch milliseconds; null after it is confirmed. */
  readonly claimedAt: number | null;
}

/** Decides whether a reference id may be claimed for the asset with this digest. */
export function checkClaim(standing: StoredClaim | null, digest: string): ClaimVerdict {
  if (standing === null) return 'free';
  if (standing.claimedAt !== null) return standing.digest === digest ? 'taken over' : 'unknown';
  return standing.status === 'failed' ? 'free' : 'taken';
}
