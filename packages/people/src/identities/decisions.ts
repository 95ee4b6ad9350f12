import type { IdentityDecisionRecord, IdentityKind, IdentityLinkRecord } from '@playline/contracts';
import type { GraphStep } from './steps.ts';

/** Why a link was refused. */
export const REFUSAL_REASONS = [
  /** One of the ids is a value that many people share. */
  'blocked',
  /** The fact is not later than the erasure of one of its identities. */
  'fenced',
  /** identify: both sides hold a value of one kind (anonymous ids apart). */
  'shared_device',
  /** alias: both sides hold a value of one unique identity type. */
  'two_known_users',
  /** The joined component would hold too many identities. */
  'too_many_identities',
  /** The joined component would hold too many anonymous ids linked within the window. */
  'too_many_anonymous_ids',
] as const;
export type RefusalReason = (typeof REFUSAL_REASONS)[number];

/** An identity whose person key changed. */
export interface MovedIdentity {
  readonly key: Buffer;
  readonly kind: IdentityKind;
  /** Epoch milliseconds of its first link; a later move keeps it. */
  readonly linkedAt: number;
}

/** What a step came to. */
export interface StepDecision extends Pick<GraphStep, 'link' | 'aKey' | 'aKind' | 'bKey' | 'bKind'> {
  readonly outcome: IdentityDecisionRecord['outcome'];
  readonly reason: RefusalReason | '';
  /** Person key of the joined component; zero when refused or ambiguous. */
  readonly root: Buffer;
  /** In ascending order of key. */
  readonly moved: readonly MovedIdentity[];
}

/** Where a link fact stands: the topic's generation, its partition and the offset in it. */
export interface FactPosition {
  readonly generation: number;
  readonly partition: number;
  readonly offset: number;
}

/** The records of a fact's decisions, one a step, in the order in which they were taken. */
export function toDecisionRecords(
  fact: IdentityLinkRecord,
  position: FactPosition,
  decisions: readonly StepDecision[],
): IdentityDecisionRecord[] {
  const { environmentId, messageId, eventTime, receivedAt, traceId } = fact;
  const { generation, partition, offset } = position;
  // Named one by one: spreading two objects into a third costs more than encoding it.
  return decisions.map(({ link, aKey, aKind, bKey, bKind, outcome, reason, root, moved }, step) => ({
    environmentId,
    generation,
    partition,
    offset,
    step,
    messageId,
    link,
    aKey,
    aKind,
    bKey,
    bKind,
    outcome,
    reason,
    root,
    moved: moved as MovedIdentity[],
    eventTime,
    receivedAt,
    traceId,
  }));
}
