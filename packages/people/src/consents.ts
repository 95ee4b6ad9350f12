import type { ConsentRecord } from '@playline/contracts';

/** What an identity may have chosen; `not_set` is the absence of a choice and is never stored. */
export type ChosenStatus = ConsentRecord['status'];

/**
 * The place of a change in the log. The key of a record decides its partition, so for one identity the offset tells
 * which of two changes is later. Only if partitions were added meanwhile can an identity have changes in two of them.
 */
export interface ConsentPlace {
  readonly partition: number;
  readonly offset: number;
  /** Epoch milliseconds by the clock of the log. Used only to compare two partitions. */
  readonly loggedAtMs: number;
}

/** A change of one identity's consent, at its place in the log. */
export interface PlacedConsent {
  readonly environmentId: string;
  /** 16 bytes. */
  readonly identityKey: Buffer;
  readonly status: ChosenStatus;
  /** Epoch milliseconds by the clock of the gateway. Compared with an erasure's cut-off. */
  readonly receivedAt: number;
  readonly place: ConsentPlace;
}

/** Whose consent it is, and what. */
export type HeldConsent = Pick<PlacedConsent, 'identityKey' | 'status' | 'receivedAt' | 'place'>;

export type StoredConsent = Omit<HeldConsent, 'identityKey'>;

/**
 * The result of a change.
 * - applied: it is the current choice now
 * - superseded: the same or a later place was applied before and stays current
 * - fenced: the identity was erased, and the change is not later than the erasure's cut-off
 */
export type ApplyOutcome = 'applied' | 'superseded' | 'fenced';

/**
 * The current consent of every identity that has chosen one. The log is the source of truth; this store answers
 * questions.
 */
export interface ConsentStore {
  /**
   * Applies one change in one step. In whatever order changes arrive, the latest place in the log counts.
   * @throws MissingEpochFault, or a fault of the connection: then the same change may be applied again
   */
  apply(change: PlacedConsent): Promise<ApplyOutcome>;
  /**
   * The choice of an identity; null when there is none.
   * @throws MissingEpochFault, because an empty store would answer that nobody has chosen anything; LaggingStoreFault,
   * because a store that was restarted may answer with an older choice; MissingFencesFault, because it may answer with
   * the choice of an erased person
   */
  read(environmentId: string, identityKey: Buffer): Promise<StoredConsent | null>;
  /** For erasures: what is stored about these identities, even when `read` would throw. */
  readStored(environmentId: string, identityKeys: readonly Buffer[]): Promise<HeldConsent[]>;
  /**
   * For erasures: forgets these consents, unless the identity has chosen again since. Fence the identities first, or
   * else a change that is on its way comes back.
   * @returns how many were forgotten
   */
  forget(environmentId: string, consents: readonly HeldConsent[]): Promise<number>;
  standing(): Promise<ConsentStanding>;
  /**
   * Notes that the store has everything of the log up to `ends` (for each partition the offset after the last record).
   * @returns false, and changes nothing, when `run` is over: what was applied in it may be lost again
   */
  markCurrent(run: string, ends: ReadonlyMap<number, number>): Promise<boolean>;
}

/**
 * How far the store is compared with its log. A run of the store lasts from its start, or its promotion in a failover,
 * to the next one.
 */
export interface ConsentStanding {
  /** Names the present run. */
  readonly run: string;
  /** False from the start of a run until somebody has brought in what the last run may have lost. */
  readonly isCurrent: boolean;
  /**
   * For each partition the greatest offset applied while the store was current, written in one step with the consent.
   */
  readonly applied: ReadonlyMap<number, number>;
}

/** The store was restarted and may lack the last changes. */
export class LaggingStoreFault extends Error {
  override readonly name = 'LaggingStoreFault';
  constructor() {
    super('the consent store was started anew and may lack the last changes: they are brought in from the log');
  }
}

/** Whether a change at `place` is later than the stored one. The table's view `consents_current` has the same rule. */
export function isLater(place: ConsentPlace, stored: ConsentPlace): boolean {
  if (place.partition === stored.partition) return place.offset > stored.offset;
  if (place.loggedAtMs !== stored.loggedAtMs) return place.loggedAtMs > stored.loggedAtMs;
  return place.partition > stored.partition;
}
