import { type IdentityDecisionRecord, type IdentityKind, type IdentityLinkRecord, ZERO_KEY } from '@playline/contracts';
import type { GraphFact, GraphStep } from './steps.ts';

export const REFUSAL_REASONS = [
  /** One of the ids is a value that many people send. */
  'blocked',
  /** The fact is not later than the erasure of an identity. */
  'fenced',
  /** identify: both sides have a value of the same kind (except anonymous ids). */
  'shared_device',
  /** alias: both sides have a value of the same unique identity type. */
  'two_known_users',
  /** The joined component would have too many identities. */
  'too_many_identities',
  /** The joined component would have too many anonymous ids that were linked within the window. */
  'too_many_anonymous_ids',
  /** The id gathers anonymous ids like a placeholder, and is held for an operator. */
  'suspect',
  /** The fact is not later than an unlink of the two sides. */
  'unlinked',
  /** Unlink: the identities do not belong to one person. */
  'not_one_person',
] as const;
export type RefusalReason = (typeof REFUSAL_REASONS)[number];

/** Reason of a decision that records a ruling; its outcome is `unchanged`. */
export const RULING_REASONS = { allow: 'operator_allowed', block: 'operator_blocked' } as const;
export type RulingReason = (typeof RULING_REASONS)[keyof typeof RULING_REASONS];

/** An identity whose person key changed. */
export interface MovedIdentity {
  readonly key: Buffer;
  readonly kind: IdentityKind;
  /** Epoch milliseconds of its first link. */
  readonly linkedAt: number;
}

/** One side of a split person: its person key, and all members by ascending key. */
export interface SplitSide {
  readonly root: Buffer;
  readonly members: readonly MovedIdentity[];
}

/** The result of a step. An unlink is one step, from the first split-off identity to one that stays. */
export interface StepDecision extends Pick<GraphStep, 'aKey' | 'aKind' | 'bKey' | 'bKind'> {
  readonly link: GraphStep['link'] | 'unlink';
  readonly outcome: IdentityDecisionRecord['outcome'] | 'unlinked';
  readonly reason: RefusalReason | RulingReason | '';
  /** Person key of the joined component, or of the split-off side; zero when refused or ambiguous. */
  readonly root: Buffer;
  /** By ascending key; for an unlink, all split-off identities. */
  readonly moved: readonly MovedIdentity[];
  /** For an unlink that split a person: the side that stays. */
  readonly stayed: SplitSide | null;
}

/** A fact with its logged decisions, for a graph that has lost them. */
export interface LoggedFact extends GraphFact {
  /** Decisions about the first steps. `parked`: later facts of the environment were decided, but this fact was not. */
  readonly logged?: readonly StepDecision[] | 'parked';
}

/** Position of a link fact in its topic. */
export interface FactPosition {
  readonly generation: number;
  readonly partition: number;
  readonly offset: number;
}

/** The records of a fact's decisions, one per step, in order. */
export function toDecisionRecords(
  fact: IdentityLinkRecord,
  position: FactPosition,
  decisions: readonly StepDecision[],
): IdentityDecisionRecord[] {
  const { environmentId, messageId, eventTime, receivedAt, traceId } = fact;
  const { generation, partition, offset } = position;
  // Without object spread, which costs more than encoding the record.
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

/** The decision of a record, the inverse of `toDecisionRecords`. */
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
  fenced: 'the message is not later than the erasure of one of the ids',
  shared_device: 'both sides already have a user, so several people share the device',
  two_known_users: 'an alias may not join two known users',
  too_many_identities: 'the person would have too many identities',
  too_many_anonymous_ids: 'the person would have too many new anonymous ids',
  suspect: 'one of the ids links too many anonymous ids. An operator allows or blocks it (identity suspects)',
  operator_allowed: 'an operator has allowed the id to link many anonymous ids (identity suspects)',
  operator_blocked: 'an operator has blocked links of the id (identity suspects)',
  unlinked: 'an operator has split the two ids, and the message is not later than the split (identity unlink)',
  not_one_person: 'the identities to split off are not of one person',
};

/** A reason as text. An unknown reason is returned unchanged. */
export const refusalText = (reason: string): string =>
  // Not an inherited member such as `constructor`.
  (Object.hasOwn(REFUSALS, reason) ? REFUSALS[reason] : undefined) ?? reason;

export interface DecidedLink {
  readonly link: string;
  readonly outcome: string;
  readonly reason: string;
  readonly movedCount: number;
}

/** The result of a link as text. An unknown reason is returned unchanged. */
export function describeLink({ link, outcome, reason, movedCount }: DecidedLink): string {
  const moved = movedCount === 1 ? '1 identity' : `${movedCount} identities`;
  if (outcome === 'linked') return `the two became one person, ${moved} got another person key`;
  if (outcome === 'unlinked') return `an operator split the two, and ${moved} became another person`;
  if (link === 'unlink' && outcome === 'unchanged') return 'there was nothing to split';
  if (outcome === 'unchanged' && reason !== '') return refusalText(reason);
  if (outcome === 'unchanged') return 'they were already one person';
  if (outcome === 'ambiguous') return 'not linked: the untyped id belongs to the same id under another type';
  return refusalText(reason);
}
