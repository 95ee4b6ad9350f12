/** The identity graph: which identities are one person. */
import type { IdentityKind } from '@playline/contracts';
import type { HoldName } from './guards.ts';
import type { LoggedFact, MovedIdentity, StepDecision } from './identities/decisions.ts';

/** A partition of one generation of the link topic. Another generation has other facts at the same offsets. */
export interface LinkSourcePartition {
  readonly generation: number;
  readonly partition: number;
}

/** Facts of one partition in the order of their offsets. */
export interface FactBlock extends LinkSourcePartition {
  /** Last offset that the caller knows to be applied. A graph that has applied less has lost data, and refuses. */
  readonly after: number;
  /** Last offset of the block, including records without a fact. */
  readonly through: number;
  /** A fact with logged decisions gets these; only fences are checked again. */
  readonly facts: readonly LoggedFact[];
}

/** What the next process that applies facts of a partition must know about its log. */
export interface GraphNote {
  /** Mark of the log's batch with the last fact, which shows whether the log is still the same. */
  readonly mark: readonly number[] | null;
  /** Offsets of the decision topic, by partition, after which the decisions of the facts are; null when unknown. */
  readonly decisions: Readonly<Record<string, number>> | null;
}

export type Applied =
  /** Decided now, or before with the recorded decisions. */
  | { readonly kind: 'decided'; readonly decisions: readonly StepDecision[] }
  /** Published and trimmed before, part of a rebuild, or without steps. */
  | { readonly kind: 'done' }
  /**
   * A hold delays the fact, or it was parked before a rebuild: it must come again at a later offset. `person` is the key
   * of the held person, which may be another one the next time.
   */
  | { readonly kind: 'parked'; readonly person: Buffer };

/** A row of `identity_overrides`: the person of an identity. */
export interface Override extends MovedIdentity {
  readonly environmentId: string;
  readonly root: Buffer;
}

/** The side of an unlink on which an identity was. A fact that is not later does not join the two sides again. */
export interface UnlinkSide {
  readonly environmentId: string;
  readonly key: Buffer;
  /** `none`: the unlink split no one, and this is the first identity that it named. */
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
 * An identity that gathers anonymous ids like a placeholder, or about which an operator has ruled. Links of held and
 * blocked ones are refused.
 */
export interface Suspect {
  readonly environmentId: string;
  readonly key: Buffer;
  readonly state: 'held' | 'allowed' | 'blocked';
  /** Epoch milliseconds of the fact that led to this state. */
  readonly since: number;
}

/** A suspect with the offset of its fact. */
export interface LoggedSuspect extends Suspect {
  readonly generation: number;
  readonly offset: number;
}

export interface Member {
  readonly key: Buffer;
  readonly kind: IdentityKind;
  readonly linkedAt: number;
}

/** Limits of a component. A larger one consists of strangers who share ids. */
export interface GraphLimits {
  readonly identitiesMax: number;
  readonly anonymousIdsMax: number;
  /** Anonymous ids linked longer before a fact do not count. */
  readonly anonymousWindowMs: number;
  /** A person has at most one value of each of these kinds: an alias may not join two. */
  readonly uniqueTypes: readonly IdentityKind[];
  /** Absent: no id is held. */
  readonly gathering?: GatheringLimit;
}

/** An id that links more anonymous ids within the window is held for an operator. */
export interface GatheringLimit {
  readonly anonymousIdsMax: number;
  readonly windowMs: number;
}

/** A person brings a few devices and private windows a day. A placeholder reaches twenty within half an hour. */
export const GATHERING: GatheringLimit = { anonymousIdsMax: 20, windowMs: 24 * 60 * 60 * 1000 };

/** Held ids of an environment. Further ones are refused without being listed. */
export const SUSPECTS_MAX = 10_000;

export const DEFAULT_LIMITS: GraphLimits = {
  identitiesMax: 1_000,
  anonymousIdsMax: 50,
  anonymousWindowMs: 30 * 24 * 60 * 60 * 1000,
  uniqueTypes: ['passport'],
};

export interface IdentityGraph {
  /**
   * Applies facts in order, each once: a fact that was applied before returns its recorded decisions.
   * @param onPart called with each part of the result, in order. Parts remain valid if the call fails
   * @throws MissingEpochFault, GraphBehindFault, or a fault of the connection: then the block may be tried again
   */
  apply(block: FactBlock, onPart?: (applied: readonly Applied[]) => void): Promise<Applied[]>;
  /** Last offset applied of a partition, -1 when none. @throws MissingEpochFault */
  lastApplied(source: LinkSourcePartition): Promise<number>;
  /** Stores a note before its facts are applied, so that it is not later than the first fact that may be lost. */
  note(source: LinkSourcePartition, note: GraphNote): Promise<void>;
  /** The last note; null when there is none. */
  readNote(source: LinkSourcePartition): Promise<GraphNote | null>;
  /** Deletes recorded decisions up to an offset, which are acknowledged and committed. */
  trim(source: LinkSourcePartition, through: number, environmentIds: Iterable<string>): Promise<void>;
  /** Person key of an identity; null when it is not linked. */
  rootOf(environmentId: string, key: Buffer): Promise<Buffer | null>;
  /** Person keys of many identities, in their order. */
  rootsOf(environmentId: string, keys: readonly Buffer[]): Promise<(Buffer | null)[]>;
  /** All members of the identity's component, by ascending key; empty when it is not linked. */
  membersOf(environmentId: string, key: Buffer): Promise<Member[]>;
  /** By ascending key. @throws MissingEpochFault */
  suspects(environmentId: string): Promise<Suspect[]>;
  /**
   * For erasures: removes identities from their components and their sides of unlinks. The other members keep the person
   * key. Fence and hold all of them first: links in flight bring them back, and only under the hold no link is newer.
   * @returns the number that was in a component
   * @throws MissingEpochFault, MissingHoldFault
   */
  forget(erasure: HoldName, keys: readonly Buffer[]): Promise<number>;
}

/** The graph has lost facts. The caller must go back to `applied` + 1. */
export class GraphBehindFault extends Error {
  override readonly name = 'GraphBehindFault';
  readonly applied: number;
  constructor(applied: number) {
    super(`the identity graph has lost facts after offset ${applied}`);
    this.applied = applied;
  }
}
