/** The identity graph: which identities are one person. */
import type { IdentityKind } from '@playline/contracts';
import type { HoldName } from './guards.ts';
import type { LoggedFact, MovedIdentity, StepDecision } from './identities/decisions.ts';

/** A partition of one generation of the link topic. Each generation has different facts at the same offsets. */
export interface LinkSourcePartition {
  readonly generation: number;
  readonly partition: number;
}

/** Facts of one partition in the order of their offsets. */
export interface FactBlock extends LinkSourcePartition {
  /** Last offset that the caller knows to be applied. A graph that has applied less has lost data, and throws. */
  readonly after: number;
  /** Last offset of the block, including records without a fact. */
  readonly through: number;
  /** Logged decisions of a fact are reused; only fences are checked again. */
  readonly facts: readonly LoggedFact[];
}

/** What the next process to apply a partition's facts must know about the log. */
export interface GraphNote {
  /** Log mark of the batch with the last fact, which shows whether the log is still the same. */
  readonly mark: readonly number[] | null;
  /** Per partition of the decision topic, the offset after which the facts' decisions are; null when unknown. */
  readonly decisions: Readonly<Record<string, number>> | null;
}

export type Applied =
  /** Decided now or earlier; earlier decisions are returned as recorded. */
  | { readonly kind: 'decided'; readonly decisions: readonly StepDecision[] }
  /** Already published and trimmed, part of a rebuild, or without steps. */
  | { readonly kind: 'done' }
  /**
   * A hold delays the fact, or it was parked before a rebuild: it must be delivered again at a later offset.
   * `person` is the held person's key, which may differ next time.
   */
  | { readonly kind: 'parked'; readonly person: Buffer };

/** A row of `identity_overrides`: the person of an identity. */
export interface Override extends MovedIdentity {
  readonly environmentId: string;
  readonly root: Buffer;
}

/** The side of an unlink that an identity is on. A fact not later than the unlink does not rejoin the two sides. */
export interface UnlinkSide {
  readonly environmentId: string;
  readonly key: Buffer;
  /** `none`: the unlink split no person, and this identity is the first that it named. */
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
 * An identity that gathers anonymous ids like a placeholder, or that an operator has ruled on. Links of held and
 * blocked identities are refused.
 */
export interface Suspect {
  readonly environmentId: string;
  readonly key: Buffer;
  readonly state: 'held' | 'allowed' | 'blocked';
  /** Epoch milliseconds of the fact that led to this state. */
  readonly since: number;
}

/** A suspect with the position of its fact. */
export interface LoggedSuspect extends Suspect {
  readonly generation: number;
  readonly offset: number;
}

export interface Member {
  readonly key: Buffer;
  readonly kind: IdentityKind;
  readonly linkedAt: number;
}

/** Limits of a component. A larger component consists of strangers who share ids. */
export interface GraphLimits {
  readonly identitiesMax: number;
  readonly anonymousIdsMax: number;
  /** Anonymous ids linked longer than this before a fact do not count. */
  readonly anonymousWindowMs: number;
  /** A person has at most one value per kind listed here: an alias may not join two values. */
  readonly uniqueTypes: readonly IdentityKind[];
  /** Absent: no id is held. */
  readonly gathering?: GatheringLimit;
}

/** An id that links more anonymous ids within the window is held until an operator decides. */
export interface GatheringLimit {
  readonly anonymousIdsMax: number;
  readonly windowMs: number;
}

/** A person uses a few devices and private windows a day. A placeholder reaches 20 ids within half an hour. */
export const GATHERING: GatheringLimit = { anonymousIdsMax: 20, windowMs: 24 * 60 * 60 * 1000 };

/** Most suspects per environment. Links of further suspects are refused, but the suspects are not listed. */
export const SUSPECTS_MAX = 10_000;

export const DEFAULT_LIMITS: GraphLimits = {
  identitiesMax: 1_000,
  anonymousIdsMax: 50,
  anonymousWindowMs: 30 * 24 * 60 * 60 * 1000,
  uniqueTypes: ['passport'],
};

export interface IdentityGraph {
  /**
   * Applies facts in order, each once: a fact that is already applied returns its recorded decisions.
   * @param onPart called with each part of the result, in order. Parts remain valid if the call fails
   * @throws MissingEpochFault, GraphBehindFault, or a connection fault, after which the block may be retried
   */
  apply(block: FactBlock, onPart?: (applied: readonly Applied[]) => void): Promise<Applied[]>;
  /** Last applied offset of a partition, -1 when there is none. @throws MissingEpochFault */
  lastApplied(source: LinkSourcePartition): Promise<number>;
  /** Stores a note before its facts are applied, so that it is not later than the first fact that may be lost. */
  note(source: LinkSourcePartition, note: GraphNote): Promise<void>;
  /** The last note; null when there is none. */
  readNote(source: LinkSourcePartition): Promise<GraphNote | null>;
  /** Deletes recorded decisions, which are acknowledged and committed, up to an offset. */
  trim(source: LinkSourcePartition, through: number, environmentIds: Iterable<string>): Promise<void>;
  /** Person key of an identity; null when it is not linked. */
  rootOf(environmentId: string, key: Buffer): Promise<Buffer | null>;
  /** Person keys of many identities, in the order of `keys`. */
  rootsOf(environmentId: string, keys: readonly Buffer[]): Promise<(Buffer | null)[]>;
  /** All members of the identity's component, by ascending key; empty when it is not linked. */
  membersOf(environmentId: string, key: Buffer): Promise<Member[]>;
  /** By ascending key. @throws MissingEpochFault */
  suspects(environmentId: string): Promise<Suspect[]>;
  /**
   * For erasures: removes identities from their components, and their unlink sides. The remaining members keep the
   * person key. Fence and hold the identities first: in-flight links would restore them, and only the hold keeps out
   * newer links.
   * @returns the number that was in a component
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
