import type { MintCollection } from './asset.ts';
import type { MintState, Standing } from './states.ts';

/** What a reference id is claimed with. */
export interface WantedClaim {
  readonly referenceId: string;
  /** Of this acceptance, when nothing is taken over. 32 lower-case hexadecimal digits. */
  readonly attemptId: string;
  /** Whose transactions would mint it. */
  readonly signer: string;
  /** Of the asset: `digestOf`. */
  readonly digest: string;
}

/** A claim that stands: the request that it is for carries these, whoever placed it first. */
export interface PlacedClaim {
  readonly referenceId: string;
  readonly attemptId: string;
  readonly signer: string;
  /** Epoch milliseconds; later than that of an attempt that has failed. */
  readonly requestedAt: number;
}

/** A claim of another asset under the same reference id, of which nobody knows whether its request is on the log. */
export interface UnknownClaim {
  readonly referenceId: string;
  readonly attemptId: string;
  readonly signer: string;
  /** Epoch milliseconds by the clock of the store. */
  readonly claimedAt: number;
  /** How long ago that was, by the same clock, in milliseconds. */
  readonly ageMs: number;
}

export type ClaimOutcome =
  | { readonly kind: 'claimed'; readonly claims: readonly PlacedClaim[] }
  /** Pending or succeeded; nothing was claimed. */
  | { readonly kind: 'taken'; readonly referenceIds: readonly string[] }
  /** Nothing was claimed. */
  | { readonly kind: 'unknown'; readonly claims: readonly UnknownClaim[] };

/** What stands for one reference id. */
export interface FoundState {
  /** Null where nothing of it is kept here: it may be in the tables. */
  readonly state: MintState | null;
  /** False when something may have been lost: then nobody can say that there is nothing. */
  readonly isComplete: boolean;
}

/**
 * Reference ids that are taken, by collection. They make a conflict quick to tell; what is minted is decided by the log.
 *
 * A claim is placed before its request goes to the log, and confirmed behind that. In between nobody knows whether the
 * request stands. The same asset asked for again takes the claim over, with its attempt and its signer, so that two requests
 * on the log are one and the same to the minter; another asset under that reference id waits until the claim is known.
 */
export interface MintClaims {
  /**
   * Looks only, when `isDry`; else claims all or none, in one step. Times are those of the store.
   * @throws IncompleteClaimsFault when claims may have been lost, and were not brought back yet
   */
  claim(
    collection: MintCollection,
    wanted: readonly WantedClaim[],
    options?: { isDry?: boolean },
  ): Promise<ClaimOutcome>;
  /**
   * The requests of these claims are on the log.
   * @returns reference ids under which another attempt stands: that one is minted, if any
   */
  confirm(collection: MintCollection, states: readonly MintState[]): Promise<readonly string[]>;
  /** Ends a claim that is as it was found, and not confirmed: its reference id is free, as behind a failure. */
  lapse(
    collection: MintCollection,
    claim: Pick<UnknownClaim, 'referenceId' | 'attemptId' | 'claimedAt'>,
  ): Promise<void>;
  read(collection: MintCollection, referenceId: string): Promise<FoundState>;
}

/** The store was emptied or started anew: claims may be missing. They come back by themselves, from the log. */
export class IncompleteClaimsFault extends Error {
  override readonly name = 'IncompleteClaimsFault';

  constructor() {
    super('claims of reference ids may be missing: the log is not read yet since the store was started');
  }
}

/** What is done with a reference id that something is claimed for. */
export type ClaimVerdict = 'free' | 'taken over' | 'unknown' | 'taken';

/** What stands, with what an unconfirmed claim has besides. */
export interface StandingClaim extends Standing {
  readonly digest: string;
  /** Epoch milliseconds; null once it is confirmed. */
  readonly claimedAt: number | null;
}

/** The rule of claims. */
export function judgeClaim(standing: StandingClaim | null, digest: string): ClaimVerdict {
  if (standing === null) return 'free';
  if (standing.claimedAt !== null) return standing.digest === digest ? 'taken over' : 'unknown';
  return standing.status === 'failed' ? 'free' : 'taken';
}
