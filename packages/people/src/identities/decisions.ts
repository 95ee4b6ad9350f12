import { type IdentityDecisionRecord, type IdentityKind, type IdentityLinkRecord, ZERO_KEY } from '@playline/contracts';
import type { GraphFact, GraphStep } from './steps.ts';

export const REFUSAL_REASONS = [
  /** An id is a placeholder or is blocked in the environment. */
  'blocked',
  /** The fact is not later than the cut-off of an identity's erasure. */
  'fenced',
  /** identify: both persons have an id of the same kind, other than anonymous ids. */
  'shared_device',
  /** alias: both persons have an id of the same unique type. */
  'two_known_users',
  /** The joined person would have too many identities. */
  'too_many_identities',
  /** The joined person would have too many anonymous ids first linked within the window. */
  'too_many_anonymous_ids',
  /** An id links as many anonymous ids as a placeholder would, and is held until an operator decides. */
  'suspect',
  /** The fact would rejoin two sides of an unlink and is not later than the unlink. */
  'unlinked',
  /** Unlink: the identities do not belong to one person. */
  'not_one_person',
] as const;
export type RefusalReason = (typeof REFUSAL_REASONS)[number];

/** Reasons of decisions that record a ruling. Their outcome is `unchanged`. */
export const RULING_REASONS = { allow: 'operator_allowed', block: 'operator_blocked' } as const;
export type RulingReason = (typeof RULING_REASONS)[keyof typeof RULING_REASONS];

/** An identity whose person key changed. */
export interface MovedIdentity {
  readonly key: Buffer;
  readonly kind: IdentityKind;
  /** Epoch milliseconds of the first link. */
  readonly linkedAt: number;
}

/** One side of a split person. Members are sorted by key. */
export interface SplitSide {
  readonly root: Buffer;
  readonly members: readonly MovedIdentity[];
}

/**
 * The decision for one step. An unlink is a single step: `a` is the first split-off identity, `b` an identity that
 * stays.
 */
export interface StepDecision extends Pick<GraphStep, 'aKey' | 'aKind' | 'bKey' | 'bKind'> {
  readonly link: GraphStep['link'] | 'unlink';
  readonly outcome: IdentityDecisionRecord['outcome'] | 'unlinked';
  readonly reason: RefusalReason | RulingReason | '';
  /** Person key of the joined person or of the split-off side; zero if refused or ambiguous. */
  readonly root: Buffer;
  /** Sorted by key. For an unlink, all split-off identities. */
  readonly moved: readonly MovedIdentity[];
  /** For an unlink that split a person, the side that stays. */
  readonly stayed: SplitSide | null;
}

/** A fact and its logged decisions, for a graph that has lost them. */
export interface LoggedFact extends GraphFact {
  /** Decisions for the first steps. `parked`: the environment has decisions for later facts but not for this fact. */
  readonly logged?: readonly StepDecision[] | 'parked';
}

/** Position of a link fact in its topic. */
export interface FactPosition {
  readonly generation: number;
  readonly partition: number;
  readonly offset: number;
}

/** Converts a fact's decisions to records, one per step, in order. */
export function toDecisionRecords(
  fact: IdentityLinkRecord,
  position: FactPosition,
  decisions: readonly StepDecision[],
): IdentityDecisionRecord[] {
  const { environmentId, messageId, eventTime, receivedAt, traceId } = fact;
  const { generation, partition, offset } = position;
  // No object spread: spreading takes longer than encoding the record.
  return decisions.map(({ link, aKey, aKind, bKey, bKind, outcome, reason, root, moved, stayed }, step) => ({
    environmentId,
    generation,
    partition,
    offset,
    step,
    messageId,
    link: link === 'unlink' || link === 'allow' || link === 'block' ? 'alias' : link,
    aKey,
    aKind,
    bKey,
    bKind,
    outcome: outcome === 'unlinked' ? 'linked' : outcome,
    reason,
    root,
    moved: moved as MovedIdentity[],
    eventTime,
    receivedAt,
    traceId,
    unlink: link === 'unlink' ? toUnlink(stayed) : null,
  }));
}

function toUnlink(stayed: SplitSide | null): IdentityDecisionRecord['unlink'] {
  return { stayedRoot: stayed?.root ?? ZERO_KEY, stayed: (stayed?.members ?? []) as MovedIdentity[] };
}

/** Converts a record to its decision; the inverse of `toDecisionRecords`. */
export function fromDecisionRecord(record: IdentityDecisionRecord): StepDecision {
  const { link, outcome, reason, aKey, aKind, bKey, bKind, root, moved, unlink } = record;
  const step = { aKey, aKind, bKey, bKind, reason: reason as StepDecision['reason'], root, moved };
  if (reason === RULING_REASONS.allow) return { ...step, link: 'allow', outcome, stayed: null };
  if (reason === RULING_REASONS.block) return { ...step, link: 'block', outcome, stayed: null };
  if (unlink === null) return { ...step, link, outcome, stayed: null };
  if (outcome !== 'linked') return { ...step, link: 'unlink', outcome, stayed: null };
  return { ...step, link: 'unlink', outcome: 'unlinked', stayed: { root: unlink.stayedRoot, members: unlink.stayed } };
}

const REFUSALS: Readonly<Record<string, string>> = {
  blocked: 'one of the ids is a value that many people share, or is blocked in this environment',
  fenced: 'one of the ids was erased, and the message is not later than the cut-off',
  shared_device: 'both sides already have a user, so several people share the device',
  two_known_users: 'an alias may not join two known users',
  too_many_identities: 'the person would have too many identities',
  too_many_anonymous_ids: 'the person would have too many new anonymous ids',
  suspect: 'one of the ids links too many anonymous ids. Allow or block it with "identity suspects"',
  operator_allowed: 'an operator allowed the id to link many anonymous ids (identity suspects)',
  operator_blocked: 'an operator blocked the id (identity suspects)',
  unlinked: 'an operator split the two ids, and the message is not later than the split (identity unlink)',
  not_one_person: 'the identities to split do not belong to one person',
};

/** Describes a reason for display. Unknown reasons are returned unchanged. */
export const refusalText = (reason: string): string =>
  // Ignores inherited properties such as `constructor`.
  (Object.hasOwn(REFUSALS, reason) ? REFUSALS[reason] : undefined) ?? reason;

export interface DecidedLink {
  readonly link: string;
  readonly outcome: string;
  readonly reason: string;
}

const REQUESTS: Readonly<Record<string, (a: string, b: string) => string>> = {
  identify: (a, b) => `An identify message named ${a} and ${b} together`,
  alias: (a, b) => `An alias message declared ${a} and ${b} to be one person`,
  same_id: (a, b) => `${a} and ${b} are the same id, once with a type and once without`,
  unlink: (a, b) => `An operator requested to split ${a} from ${b}`,
};

/** Explains a decision about two ids in a sentence. @param a the name of the first id in the sentence */
export function explainLink({ link, outcome, reason }: DecidedLink, a: string, b: string): string {
  const ruling = Object.values(RULING_REASONS).find((each) => each === reason);
  if (ruling !== undefined) return `Ruling about ${a}: ${refusalText(ruling)}.`;
  const request = Object.hasOwn(REQUESTS, link) ? REQUESTS[link]!(a, b) : `A message named ${a} and ${b}`;
  if (outcome === 'linked') return `${request}, so they belong to one person.`;
  if (outcome === 'unlinked') return `${request}, so they belong to two persons.`;
  if (outcome === 'unchanged')
    return `${request}. ${link === 'unlink' ? 'There was nothing to split' : 'They already belonged to one person'}.`;
  const result = link === 'unlink' ? 'They were not split' : 'They were not linked';
  const cause =
    outcome === 'ambiguous' ? 'the untyped id belongs to the same id under another type' : refusalText(reason);
  return `${request}. ${result}: ${cause}.`;
}
