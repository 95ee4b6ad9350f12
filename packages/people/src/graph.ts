import type { IdentityKind } from '@playline/contracts';
import type { HoldName } from './guards.ts';
import type { MovedIdentity, StepDecision } from './identities/decisions.ts';
import type { GraphFact } from './identities/steps.ts';

/** A partition of one generation of the link topic. Offsets of another generation mean other facts. */
export interface LinkSourcePartition {
  readonly generation: number;
  readonly partition: number;
}

/** Facts of one partition in the order of their offsets. */
export interface FactBlock extends LinkSourcePartition {
  /** Offset that the caller knows to be applied; a graph that knows less has lost something and refuses. */
  readonly after: number;
  /** Last offset that the block accounts for; records without a fact are inside too. */
  readonly through: number;
  readonly facts: readonly GraphFact[];
}

/** What became of a fact. */
export type Applied =
  /** Decided now, or decided before and recorded: the same decisions either way. */
  | { readonly kind: 'decided'; readonly decisions: readonly StepDecision[] }
  /** Decided and published before, trimmed or part of what was rebuilt, or a fact without steps: nothing is left to do. */
  | { readonly kind: 'done' }
  /**
   * The fact is newer than a hold on one of its people, or was so before a rebuild. It is not applied, and must come
   * again under a later offset. `person` is the key of the person who is held, for whoever paces what waits; it may be
   * another one the next time.
   */
  | { readonly kind: 'parked'; readonly person: Buffer };

/** A line of `identity_overrides`: this identity belongs to that person. */
export interface Override extends MovedIdentity {
  readonly environmentId: string;
  readonly root: Buffer;
}

/** On which side of an unlink an identity stood: facts not later than it do not bring the two sides together again. */
export interface UnlinkSide {
  readonly environmentId: string;
  readonly key: Buffer;
  /** `none`: the unlink split nobody, and this is the first that it named. */
  readonly side: 'split' | 'stayed' | 'none';
  /** Place of the unlink in the link topic: generation and offset. */
  readonly generation: number;
  readonly offset: number;
  /** Epoch milliseconds. */
  readonly unlinkedAt: number;
}

/** Where a fact stands that was decided. */
export interface DecidedPlace extends LinkSourcePartition {
  readonly environmentId: string;
  readonly offset: number;
}

export interface Member {
  readonly key: Buffer;
  readonly kind: IdentityKind;
  readonly linkedAt: number;
}

/** Bounds of a component: past them it is shared ids, not a person, that hold it together. */
export interface GraphLimits {
  readonly identitiesMax: number;
  readonly anonymousIdsMax: number;
  /** Anonymous ids linked longer than this before a fact do not count. */
  readonly anonymousWindowMs: number;
  /** Of these a person has one value; alias may not join two. */
  readonly uniqueTypes: readonly IdentityKind[];
}

export const DEFAULT_LIMITS: GraphLimits = {
  identitiesMax: 1_000,
  anonymousIdsMax: 50,
  anonymousWindowMs: 30 * 24 * 60 * 60 * 1000,
  uniqueTypes: ['passport'],
};

/** Who is the same person as whom, by environment. */
export interface IdentityGraph {
  /**
   * Applies facts in order, each once: one that was applied before gives its recorded decision.
   * @param onPart told of every part of the answer as soon as it is decided, in order, for work that need not wait for
   *   the rest; when the call fails, what was told stands
   * @throws MissingEpochFault, GraphBehindFault, or a fault of the connection; then the same block may be tried again
   */
  apply(block: FactBlock, onPart?: (applied: readonly Applied[]) => void): Promise<Applied[]>;
  /** Last offset applied of a partition, -1 when none. @throws MissingEpochFault */
  lastApplied(source: LinkSourcePartition): Promise<number>;
  /**
   * Remembers which batch of the log holds the last of the facts about to be applied, as its log names it. Must come
   * before they are applied: whoever applies from the partition later can tell that its log is still the same.
   */
  noteMark(source: LinkSourcePartition, mark: string): Promise<void>;
  /** What was noted last; null when nothing was. */
  readMark(source: LinkSourcePartition): Promise<string | null>;
  /** Forgets recorded decisions up to an offset: they are acknowledged and the offset is committed. */
  trim(source: LinkSourcePartition, through: number, environmentIds: Iterable<string>): Promise<void>;
  /** Person key of an identity; null while it is linked to nobody. */
  rootOf(environmentId: string, key: Buffer): Promise<Buffer | null>;
  /** Everybody of the identity's component by ascending key; empty while it is linked to nobody. */
  membersOf(environmentId: string, key: Buffer): Promise<Member[]>;
  /**
   * Erasure: takes identities out of their components, and out of the memory of unlinks; whoever stays keeps the person
   * key. Safe to repeat. Fence them first, else a fact on its way brings them back, and hold every one of them: only
   * while this erasure's hold stands is nothing newer in the graph, which an eraser that comes late would take out too.
   * @returns how many of them stood in a component
   * @throws MissingEpochFault, MissingHoldFault
   */
  forget(erasure: HoldName, keys: readonly Buffer[]): Promise<number>;
}

/** The graph has applied less than its caller saw applied: go back to `applied` + 1. */
export class GraphBehindFault extends Error {
  override readonly name = 'GraphBehindFault';
  readonly applied: number;
  constructor(applied: number) {
    super(`the identity graph has applied offsets up to ${applied} only`);
    this.applied = applied;
  }
}
