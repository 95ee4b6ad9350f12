import type { ConsentStore } from './consents.ts';
import type { IdentityGraph } from './graph.ts';
import type { ErasureGuards } from './guards.ts';
import type { PeopleRebuild } from './rebuild.ts';

/**
 * Everything that one store answers about people. One epoch guards all of it: without an epoch the store is empty or
 * half rebuilt, and its answers would separate linked people and forget refused consents.
 */
export interface People {
  readonly graph: IdentityGraph;
  readonly consents: ConsentStore;
  readonly guards: ErasureGuards;
  readonly rebuild: PeopleRebuild;
  /** Null while the store is empty or half rebuilt. */
  readEpoch(): Promise<string | null>;
  /** Whether the store has an epoch and all fences, and accepts writes. */
  ready(): Promise<boolean>;
  /**
   * Whether the store accepts writes; false also when it does not answer. Never throws, and resolves within a second.
   */
  takesWrites(): Promise<boolean>;
  /**
   * Asks the store to rewrite its log, so that no file of it contains what was forgotten. Resolves when the request is
   * made, not when it is done.
   * @throws a fault of the store, which may not allow the request
   */
  rewriteLog(): Promise<void>;
  /** Epoch milliseconds by the wall clock of the store. */
  readClockMs(): Promise<number>;
  close(): Promise<void>;
}

/**
 * Redis has no epoch: it is empty, or a rebuild is not finished. Its answers would separate linked people and forget
 * refused consents.
 */
export class MissingEpochFault extends Error {
  override readonly name = 'MissingEpochFault';
  constructor() {
    super('Redis has no epoch of the identities: initialise or rebuild it');
  }
}

/**
 * Redis was restarted or promoted and may lack fences of erased people, or have data of them again. An eraser sets the
 * fences again; until then no link is applied and no consent is read.
 */
export class MissingFencesFault extends Error {
  override readonly name = 'MissingFencesFault';
  constructor() {
    super('Redis was restarted and may lack fences of erased people: an eraser must be running, which sets them again');
  }
}

/**
 * Something that is allowed only under an erasure's hold was tried without it: the erasure is finished, or its hold
 * must be placed again.
 */
export class MissingHoldFault extends Error {
  override readonly name = 'MissingHoldFault';
  constructor() {
    super('the hold of this erasure does not stand');
  }
}

/** Redis was restarted during a rebuild and may have lost a part of what was loaded. */
export class RestartedFault extends Error {
  override readonly name = 'RestartedFault';
  constructor() {
    super('Redis was restarted during the rebuild: empty it (FLUSHDB) and rebuild it again');
  }
}

/** Redis is in use, but a rebuild needs one without an epoch. */
export class EpochPresentFault extends Error {
  override readonly name = 'EpochPresentFault';
  constructor() {
    super('Redis has an epoch of the identities: only one without is loaded');
  }
}
