/** The identity graph maps identities to persons. */
import type { IdentityKind } from '@playline/contracts';
import type { HoldName } from './guards.ts';
import type { LoggedFact, MovedIdentity, StepDecision } from './identities/decisions.ts';

/** A partition in one generation of the link topic. Offsets of different generations are not comparable. */
export interface LinkSourcePartition {
  readonly generation: number;
  readonly partition: number;
}

/** Facts from one partition in offset order. */
export interface FactBlock extends LinkSourcePartition {
  /** The last offset that the caller knows to be applied. `apply` throws if the graph is behind this offset. */
  readonly after: number;
  /** Last offset of the block, including records without a fact. */
  readonly through: number;
  /** A fact's logged decisions are reused; only fences are rechecked. */
  readonly facts: readonly LoggedFact[];
}

/** Log state that the partition's next owner needs. */
export interface GraphNote {
  /** Log mark of the batch that contains the last fact; used to detect a truncated or replaced log. */
  readonly mark: readonly number[] | null;
  /** Per decision-topic partition, the offset before the facts' first decision; null if unknown. */
  readonly decisions: Readonly<Record<string, number>> | null;
}

export type Applied =
  /** Decided in this call or earlier. Earlier decisions are returned as recorded. */
  | { readonly kind: 'decided'; readonly decisions: readonly StepDecision[] }
  /** The decisions were trimmed after publishing or restored by a rebuild, or the fact has no steps. */
  | { readonly kind: 'done' }
  /**
   * A hold delays the fact, or the fact was parked before a rebuild. It must be republished at a later offset. `person`
   * is the held person's key, which may change before the next attempt.
   */
  | { readonly kind: 'parked'; readonly person: Buffer };

/** A row of `identity_overrides`, which maps an identity to its person. */
export interface Override extends MovedIdentity {
  readonly environmentId: string;
  readonly root: Buffer;
}

/** An identity's side of an unlink. Facts up to the time of the unlink cannot rejoin the two sides. */
export interface UnlinkSide {
  readonly environmentId: string;
  readonly key: Buffer;
  /** `none`: the unlink split no person, and `key` is the first identity in the unlink. */
  readonly side: 'split' | 'stayed' | 'none';
  /** Offset of the unlink in the link topic. */
  readonly generation: number;
  readonly offset: number;
  readonly unlinkedAt: number;
}

export interface DecidedFact extends LinkSourcePartition {
  readonly environmentId: string;
  readonly offset: number;
}

/**
 * An identity that links as many anonymous ids as a placeholder would, or that an operator has ruled on. The graph
 * refuses links of held and blocked identities.
 */
export interface Suspect {
  readonly environmentId: string;
  readonly key: Buffer;
  readonly state: 'held' | 'allowed' | 'blocked';
  /** Receipt time of the fact that set this state, in epoch milliseconds. */
  readonly since: number;
}

/** A suspect and the log position of the fact that set its state. */
export interface LoggedSuspect extends Suspect {
  readonly generation: number;
  readonly offset: number;
}

export interface Member {
  readonly key: Buffer;
  readonly kind: IdentityKind;
  readonly linkedAt: number;
}

/** Limits per person. Beyond these limits, the identities most likely belong to different people who share ids. */
export interface GraphLimits {
  readonly identitiesMax: number;
  readonly anonymousIdsMax: number;
  /** An anonymous id counts toward `anonymousIdsMax` for this long after its first link. */
  readonly anonymousWindowMs: number;
  /** Kinds of which a person has at most one id. An alias that would join two of them is refused. */
  readonly uniqueTypes: readonly IdentityKind[];
  /** If absent, no id is held. */
  readonly suspectLimit?: SuspectLimit;
}

/** An id that links more than `anonymousIdsMax` anonymous ids within the window is held until an operator decides. */
export interface SuspectLimit {
  readonly anonymousIdsMax: number;
  readonly windowMs: number;
}

/** A person uses a few devices and private windows per day. A placeholder reaches 20 ids within half an hour. */
export const SUSPECT_LIMIT: SuspectLimit = { anonymousIdsMax: 20, windowMs: 24 * 60 * 60 * 1000 };

/** Maximum number of listed suspects per environment. Links of additional suspects are also refused. */
export const SUSPECTS_MAX = 10_000;

export const DEFAULT_LIMITS: GraphLimits = {
  identitiesMax: 1_000,
  anonymousIdsMax: 50,
  anonymousWindowMs: 30 * 24 * 60 * 60 * 1000,
  uniqueTypes: ['passport'],
};

export interface IdentityGraph {
  /**
   * Applies facts in order and exactly once. A fact that was already applied returns its recorded decisions.
   * @param onPart called with each partial result, in order. Partial results remain valid if the call fails
   * @throws MissingEpochFault, GraphBehindFault, or a connection fault, after which the block may be retried
   */
  apply(block: FactBlock, onPart?: (applied: readonly Applied[]) => void): Promise<Applied[]>;
  /** Last applied offset of a partition, or -1. @throws MissingEpochFault */
  lastApplied(source: LinkSourcePartition): Promise<number>;
  /**
   * Stores a note. Call this before applying the facts, so that facts that survive a data loss still have a note.
   * @param through last offset of the batch; a part of the graph that has applied this offset keeps its note
   */
  note(source: LinkSourcePartition, note: GraphNote, through?: number): Promise<void>;
  /** Returns the last note, or null. */
  readNote(source: LinkSourcePartition): Promise<GraphNote | null>;
  /** Deletes recorded decisions up to an offset, after they are published and the offset is committed. */
  trim(source: LinkSourcePartition, through: number, environmentIds: Iterable<string>): Promise<void>;
  /** The identity's person key, or null if the identity has no links. */
  rootOf(environmentId: string, key: Buffer): Promise<Buffer | null>;
  /** Each identity's person key, in the order of `keys`. */
  rootsOf(environmentId: string, keys: readonly Buffer[]): Promise<(Buffer | null)[]>;
  /** All identities of the person, sorted by key. Empty if the identity has no links. */
  membersOf(environmentId: string, key: Buffer): Promise<Member[]>;
  /** All suspects, sorted by key. @throws MissingEpochFault */
  suspects(environmentId: string): Promise<Suspect[]>;
  /**
   * For an erasure, removes identities and their unlink sides. The remaining members keep the person key. Fence and
   * hold the identities first: without a fence, in-flight links would restore an identity; only the hold delays newer
   * links.
   * @returns the number of removed identities
   * @throws MissingEpochFault, MissingHoldFault
   */
  forget(erasure: HoldName, keys: readonly Buffer[]): Promise<number>;
}

/** The graph has lost facts. The caller must rewind to `applied` + 1. */
export class GraphBehindFault extends Error {
  override readonly name = 'GraphBehindFault';
  readonly applied: number;
  constructor(applied: number) {
    super(`the identity graph has lost facts after offset ${applied}`);
    this.applied = applied;
  }
}
