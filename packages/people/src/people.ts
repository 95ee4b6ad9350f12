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
