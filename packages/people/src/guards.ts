/**
 * The hold of one erasure: until the erasure is finished, links wait that are newer than its cut-off and touch one of
 * its keys.
 */
export interface ErasureHold {
  readonly environmentId: string;
  /** 16 bytes, a UUID. */
  readonly erasureId: Buffer;
  /** Identity keys, 16 bytes each. */
  readonly keys: readonly Buffer[];
  /** Epoch milliseconds: the time of the request. */
  readonly cutoffMs: number;
  /** Epoch milliseconds from which the hold may be dropped; null once the erasure's request is on the topic. */
  readonly lapsesAtMs: number | null;
}

/** A hold without its keys. */
export type StandingHold = Omit<ErasureHold, 'environmentId' | 'keys'>;

export type HoldName = Pick<ErasureHold, 'environmentId' | 'erasureId'>;

/** For erasures: nothing of this identity that is not later than the cut-off (epoch milliseconds) may remain. */
export interface Cutoff {
  readonly environmentId: string;
  readonly key: Buffer;
  readonly cutoffMs: number;
}

/**
 * Keeps an erased person from coming back. A hold exists while the erasure runs: links newer than its cut-off wait. A
 * fence stays forever: links and consents not later than its cut-off are refused.
 *
 * Several erasures may hold one identity. Each releases its own hold only, and of those that are left the latest
 * cut-off counts.
 */
export interface ErasureGuards {
  /** Holds every key, and replaces what this erasure held before. In effect when it resolves. */
  place(hold: ErasureHold): Promise<void>;
  /**
   * Notes that the request is on the topic, so the hold does not expire any more.
   * @returns false when there is no such hold. Then none is created, since the erasure may be finished already
   */
  confirm(name: HoldName): Promise<boolean>;
  /**
   * Like `place`, but only if this erasure has a hold already. If the erasure is finished, nobody would release a hold
   * that a paused eraser places.
   * @returns whether it has one
   */
  extend(hold: ErasureHold): Promise<boolean>;
  /** Holds of an environment. */
  list(environmentId: string): Promise<StandingHold[]>;
  /** Releases a hold; does nothing when there is none. */
  release(name: HoldName): Promise<void>;
  /**
   * Releases every hold whose request never reached the topic.
   * @returns how many
   */
  dropLapsed(nowMs: number): Promise<number>;
  /**
   * For each identity, from when on links of its person wait, as the identity graph would decide now. A link received
   * later than this (epoch milliseconds) waits; null while no identity of the person is held. Identities of one person
   * get the same answer, even if a hold ends meanwhile.
   * @throws MissingEpochFault, since an empty store would say that nobody is held
   */
  heldFrom(environmentId: string, keys: readonly Buffer[]): Promise<(number | null)[]>;
  /** Sets fences; a later fence of an identity stays. Safe to repeat, with or without an epoch. */
  fence(cutoffs: readonly Cutoff[]): Promise<void>;
  /**
   * Sets fences like `fence`, and removes what they should have kept out: links and consents not later than the cut-off.
   * For a store that has gone back to an earlier state, and for checks. Later links of these identities are in the log
   * after that state, and are applied again.
   */
  enforce(cutoffs: readonly Cutoff[]): Promise<Enforced>;
  fenceStatus(): Promise<FenceStatus>;
  /**
   * Notes that the fences of all erased people are set and enforced.
   * @returns false, and changes nothing, when `run` is over: fences set in it may be lost again
   */
  completeFences(run: string): Promise<boolean>;
}

/** What was there although a fence should have kept it out. */
export interface Enforced {
  /** Identities that were taken out of the graph. */
  readonly links: number;
  readonly consents: number;
}

/** Whether the store has all fences. A run of the store lasts from its start, or its promotion, to the next one. */
export interface FenceStatus {
  /** Identifies the present run. */
  readonly run: string;
  /** False from the start of a run until the fences were set again, since a restarted store may have lost some. */
  readonly isComplete: boolean;
}
