import type { IdentityKind } from '@playline/contracts';
import type { HoldName } from './guards.ts';
import type { LoggedFact, MovedIdentity, StepDecision } from './identities/decisions.ts';

/** A partition of one generation of the link topic. In another generation the same offsets are other facts. */
export interface LinkSourcePartition {
  readonly generation: number;
  readonly partition: number;
}

/** Facts of one partition in the order of their offsets. */
export interface FactBlock extends LinkSourcePartition {
  /**
   * The caller knows that everything up to this offset is applied. If the graph knows less, it has lost something, and
   * refuses.
   */
  readonly after: number;
  /** Last offset covered by the block, including records that contain no fact. */
  readonly through: number;
  /** A fact with logged decisions gets these, whatever holds and limits are now. Only fences are checked again. */
  readonly facts: readonly LoggedFact[];
}

/** What the next one who applies facts of a partition must know about its log. */
export interface GraphNote {
  /** Mark of the log's batch that contains the last fact: with it one can tell whether the log is still the same. */
  readonly mark: readonly number[] | null;
  /** Offsets of the decision topic, by partition, after which the decisions of the facts are; null when unknown. */
  readonly decisions: Readonly<Record<string, number>> | null;
}

/** The result of a fact. */
export type Applied =
  /** Decided now, or decided before and recorded: the decisions are the same. */
  | { readonly kind: 'decided'; readonly decisions: readonly StepDecision[] }
  /**
   * Nothing is left to do: it was decided and published before and then trimmed, or was part of what was rebuilt, or
   * has no steps.
   */
  | { readonly kind: 'done' }
  /**
   * The fact is newer than a hold on one of its people, or it was before a rebuild. It is not applied, and must come
   * again under a later offset. `person` is the key of the person with the hold, so that the caller can pace what
   * waits. It may be another person the next time.
   */
  | { readonly kind: 'parked'; readonly person: Buffer };

/** A line of `identity_overrides`: this identity belongs to that person. */
export interface Override extends MovedIdentity {
  readonly environmentId: string;
  readonly root: Buffer;
}

/**
 * On which side of an unlink an identity was. A fact that is not later than the unlink does not join the two sides
 * again.
 */
export interface UnlinkSide {
  readonly environmentId: string;
  readonly key: Buffer;
  /** `none`: the unlink split nobody, and this is the first identity that it named. */
  readonly side: 'split' | 'stayed' | 'none';
  /** Place of the unlink in the link topic: generation and offset. */
  readonly generation: number;
  readonly offset: number;
  /** Epoch milliseconds. */
  readonly unlinkedAt: number;
}

/** Place of a decided fact. */
export interface DecidedFact extends LinkSourcePartition {
  readonly environmentId: string;
  readonly offset: number;
}

/**
 * An identity that has gathered anonymous ids as only a placeholder does, or about which an operator has ruled. While it
 * is held or blocked, links of it are refused.
 */
export interface Suspect {
  readonly environmentId: string;
  readonly key: Buffer;
  readonly state: 'held' | 'allowed' | 'blocked';
  /** Epoch milliseconds: when the fact was received that brought it into this state. */
  readonly since: number;
}

/** Place of a decision beside the suspect that it made. */
export interface LoggedSuspect extends Suspect {
  readonly generation: number;
  readonly offset: number;
}

export interface Member {
  readonly key: Buffer;
  readonly kind: IdentityKind;
  readonly linkedAt: number;
}

/** Limits of a component. A larger one is held together by ids that strangers share, and is not one person. */
export interface GraphLimits {
  readonly identitiesMax: number;
  readonly anonymousIdsMax: number;
  /** Anonymous ids that were linked longer ago than this, compared with a fact, do not count. */
  readonly anonymousWindowMs: number;
  /** A person has at most one value of each of these kinds: an alias may not join two. */
  readonly uniqueTypes: readonly IdentityKind[];
  /** Absent: no id is held for what it gathers. */
  readonly gathering?: GatheringLimit;
}

/** More anonymous ids than this, linked within the window, and the id that links them is held for an operator. */
export interface GatheringLimit {
  readonly anonymousIdsMax: number;
  readonly windowMs: number;
}

/**
 * A person brings a few new devices, browsers and private windows a day. Even a tester seldom reaches twenty, while a
 * placeholder of a game with a thousand sign-ins a day gets there within half an hour. A day covers every time zone.
 */
export const GATHERING: GatheringLimit = { anonymousIdsMax: 20, windowMs: 24 * 60 * 60 * 1000 };

/** Held ids of an environment. Further ones are refused without being listed, until an operator has ruled. */
export const SUSPECTS_MAX = 10_000;

export const DEFAULT_LIMITS: GraphLimits = {
  identitiesMax: 1_000,
  anonymousIdsMax: 50,
  anonymousWindowMs: 30 * 24 * 60 * 60 * 1000,
  uniqueTypes: ['passport'],
};

/** Which identities are the same person, by environment. */
export interface IdentityGraph {
  /**
   * Applies facts in order, each once: for a fact that was applied before it returns the recorded decision.
   * @param onPart called with every part of the answer as soon as it is decided, in order, for work that need not wait
   * for the rest. If the call fails, the parts reported so far remain valid
   * @throws MissingEpochFault, GraphBehindFault, or a fault of the connection: then the same block may be tried again
   */
  apply(block: FactBlock, onPart?: (applied: readonly Applied[]) => void): Promise<Applied[]>;
  /** Last offset applied of a partition, -1 when none. @throws MissingEpochFault */
  lastApplied(source: LinkSourcePartition): Promise<number>;
  /**
   * Stores a note about the facts that are about to be applied. Call it before they are applied. So a graph that has lost
   * facts has a note that is not later than the first of them.
   */
  note(source: LinkSourcePartition, note: GraphNote): Promise<void>;
  /** The last note; null when there is none. */
  readNote(source: LinkSourcePartition): Promise<GraphNote | null>;
  /** Deletes recorded decisions up to an offset: their records are acknowledged and the offset is committed. */
  trim(source: LinkSourcePartition, through: number, environmentIds: Iterable<string>): Promise<void>;
  /** Person key of an identity; null when it is not linked. */
  rootOf(environmentId: string, key: Buffer): Promise<Buffer | null>;
  /** Person keys of many identities, in their order; null for one that is not linked. */
  rootsOf(environmentId: string, keys: readonly Buffer[]): Promise<(Buffer | null)[]>;
  /** All members of the identity's component, by ascending key; empty when it is not linked. */
  membersOf(environmentId: string, key: Buffer): Promise<Member[]>;
  /** Identities that are held, and those about which an operator has ruled, by ascending key. @throws MissingEpochFault */
  suspects(environmentId: string): Promise<Suspect[]>;
  /**
   * For erasures: removes identities from their components and from the memory of unlinks. Those who stay keep the
   * person key. Safe to repeat. Fence the identities first, or a fact in flight brings them back. Hold all of them:
   * only while this erasure's hold exists, the graph has no newer links, which a late eraser would remove.
   * @returns how many of them were in a component
   * @throws MissingEpochFault, MissingHoldFault
   */
  forget(erasure: HoldName, keys: readonly Buffer[]): Promise<number>;
}

/** The graph has applied less than its caller has seen applied. The caller must go back to `applied` + 1. */
export class GraphBehindFault extends Error {
  override readonly name = 'GraphBehindFault';
  readonly applied: number;
  constructor(applied: number) {
    super(`the identity graph has applied offsets up to ${applied} only`);
    this.applied = applied;
  }
}
