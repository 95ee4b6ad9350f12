import type { ConsentRecord } from '@playline/contracts';

/** What an identity may have chosen; `not_set` is the absence of a choice and is never stored. */
export type ChosenStatus = ConsentRecord['status'];

/**
 * Where a change stands in the log. The record key fixes the partition, so the offset tells which of two changes of one
 * identity is the later one. Only when partitions were added in between does an identity have changes in two of them.
 */
export interface ConsentPlace {
  readonly partition: number;
  readonly offset: number;
  /** Epoch milliseconds by the clock of the log; decides between partitions only. */
  readonly loggedAtMs: number;
}

/** A change of one identity's consent, at its place in the log. */
export interface PlacedConsent {
  readonly environmentId: string;
  /** 16 bytes. */
  readonly identityKey: Buffer;
  readonly status: ChosenStatus;
  /** Epoch milliseconds by the clock of the gateway: what an erasure's cut-off is held against. */
  readonly receivedAt: number;
  readonly place: ConsentPlace;
}

/** Whose consent it is, and what. */
export type HeldConsent = Pick<PlacedConsent, 'identityKey' | 'status' | 'place'>;

export type StoredConsent = Pick<PlacedConsent, 'status' | 'place'>;

/**
 * What became of a change.
 * - applied: it is the answer from now on
 * - superseded: the same or a later place was applied before; that one stays the answer
 * - fenced: the identity was erased and the change is not later than the erasure's cut-off
 */
export type ApplyOutcome = 'applied' | 'superseded' | 'fenced';

/** The current consent of every identity that has chosen one. The log is the truth; this answers. */
export interface ConsentStore {
  /**
   * Applies one change in one step: whatever the order in which changes come, the latest place is what stays.
   * @throws MissingEpochFault, or a fault of the connection; then the same change may be applied again
   */
  apply(change: PlacedConsent): Promise<ApplyOutcome>;
  /**
   * What the identity has chosen; null when nothing.
   * @throws MissingEpochFault, because an empty store would answer that nobody has chosen anything; LaggingStoreFault
   *   because a store that was started anew may answer with an older choice
   */
  read(environmentId: string, identityKey: Buffer): Promise<StoredConsent | null>;
  /** Erasure: what is stored of these identities, also while `read` would not answer. */
  readStored(environmentId: string, identityKeys: readonly Buffer[]): Promise<HeldConsent[]>;
  /**
   * Erasure: forgets these consents, but none of an identity that has chosen again since. Fence the identities first,
   * else a change on its way comes back.
   * @returns how many were forgotten
   */
  forget(environmentId: string, consents: readonly HeldConsent[]): Promise<number>;
  standing(): Promise<ConsentStanding>;
  /**
   * The store has everything of the log up to `ends` (by partition, the offset behind the last).
   * @returns false, and changes nothing, when `run` is over: what was applied in it may be lost again
   */
  markCurrent(run: string, ends: ReadonlyMap<number, number>): Promise<boolean>;
}

/** Where the store stands to its log. A run of it lasts from its start, or its promotion in a failover, to the next. */
export interface ConsentStanding {
  /** Names the present run. */
  readonly run: string;
  /** False from the start of a run until somebody has brought in what the one before may have lost. */
  readonly isCurrent: boolean;
  /** By partition, the greatest offset applied while the store was current: written in one step with the consent. */
  readonly applied: ReadonlyMap<number, number>;
}

/** The store was started anew and may lack the changes that it was given last. */
export class LaggingStoreFault extends Error {
  override readonly name = 'LaggingStoreFault';
  constructor() {
    super('the consent store was started anew and may lack the last changes: they are brought in from the log');
  }
}

/** Whether a change at `place` is later than what is stored: the rule of the table's view `consents_current`. */
export function isLater(place: ConsentPlace, stored: ConsentPlace): boolean {
  if (place.partition === stored.partition) return place.offset > stored.offset;
  if (place.loggedAtMs !== stored.loggedAtMs) return place.loggedAtMs > stored.loggedAtMs;
  return place.partition > stored.partition;
}
