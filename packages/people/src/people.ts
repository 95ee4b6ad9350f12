import type { ConsentStore } from './consents.ts';
import type { IdentityGraph } from './graph.ts';
import type { ErasureGuards } from './guards.ts';
import type { PeopleRebuild } from './rebuild.ts';

/**
 * All that one store answers about people. One epoch guards the whole: without it the store is empty or half rebuilt,
 * and whoever believed it would part everybody and forget every refusal.
 */
export interface People {
  readonly graph: IdentityGraph;
  readonly consents: ConsentStore;
  readonly guards: ErasureGuards;
  readonly rebuild: PeopleRebuild;
  /** Null while the store is empty or half rebuilt. */
  readEpoch(): Promise<string | null>;
  /** Whether it has an epoch and takes writes. */
  ready(): Promise<boolean>;
  /** Whether the store takes writes: false also while it does not answer. Never throws, and tells within a second. */
  takesWrites(): Promise<boolean>;
  /**
   * Asks the store to write its log anew, so that what was forgotten stands in no file of it any more. Resolves when it
   * was asked, not when it is done.
   * @throws a fault of the store, which may not let anybody ask
   */
  rewriteLog(): Promise<void>;
  close(): Promise<void>;
}
