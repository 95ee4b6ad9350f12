/** A hold of one erasure: links newer than its cut-off that touch one of its keys wait until the erasure is done. */
export interface ErasureHold {
  readonly environmentId: string;
  /** 16 bytes, a UUID. */
  readonly erasureId: Buffer;
  /** Identity keys, 16 bytes each. */
  readonly keys: readonly Buffer[];
  /** Epoch milliseconds: T of the erasure. */
  readonly cutoffMs: number;
  /** Epoch milliseconds from which it may be dropped; null for an erasure whose request stands on the topic. */
  readonly lapsesAtMs: number | null;
}

/** A hold that stands, without its keys. */
export type StandingHold = Omit<ErasureHold, 'environmentId' | 'keys'>;

export type HoldName = Pick<ErasureHold, 'environmentId' | 'erasureId'>;

/** Erasure: nothing of this identity that is not later than the cut-off (epoch milliseconds) may stand any more. */
export interface Cutoff {
  readonly environmentId: string;
  readonly key: Buffer;
  readonly cutoffMs: number;
}

/**
 * What keeps an erased person from coming back. A hold lasts as long as the erasure: links newer than its cut-off wait.
 * A fence outlives it: links and consents not later than its cut-off are refused.
 *
 * Several erasures may hold one identity: each lets go of its own hold only, and the identity waits for the latest
 * cut-off of those that are left.
 */
export interface ErasureGuards {
  /** Holds every key, in the place of what this erasure held before. In force when it resolves. */
  place(hold: ErasureHold): Promise<void>;
  /**
   * The request stands on the topic: the hold does not lapse any more.
   * @returns false when there is no such hold (any more); nothing is made then, since the erasure may be done already
   */
  confirm(name: HoldName): Promise<boolean>;
  /**
   * As `place`, but only where this erasure has a hold. Once it is done nobody would release a hold that a paused
   * eraser places.
   * @returns whether it has one
   */
  extend(hold: ErasureHold): Promise<boolean>;
  /** Holds of an environment. */
  list(environmentId: string): Promise<StandingHold[]>;
  /** Lets go; nothing happens when there is no such hold (any more). */
  release(name: HoldName): Promise<void>;
  /** Lets go of every hold whose request never reached the topic. @returns how many */
  dropLapsed(nowMs: number): Promise<number>;
  /**
   * Tells of each identity from when on links of its person wait, as the identity graph would decide now: a link received
   * later than this (epoch milliseconds) waits; null while nobody holds any identity of the person. Of identities of one
   * person the answers are alike, also where a hold goes meanwhile.
   * @throws MissingEpochFault, since an empty store would say that nobody is held
   */
  heldFrom(environmentId: string, keys: readonly Buffer[]): Promise<(number | null)[]>;
  /** Sets fences, each unless a later one stands. Safe to repeat, with or without an epoch. */
  fence(cutoffs: readonly Cutoff[]): Promise<void>;
}
