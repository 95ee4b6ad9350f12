import { IDENTITY_TYPES, type IdentityKind, type IdentityLinkRecord } from '@playline/contracts';
import { type Ruling, rulingOf } from './facts.ts';
import type { IdentityKeyer } from './keyer.ts';
import type { IsBlocked } from './placeholders.ts';

export interface GraphStep {
  readonly link: 'identify' | 'alias' | 'same_id' | Ruling['verdict'];
  readonly aKey: Buffer;
  readonly aKind: IdentityKind;
  readonly bKey: Buffer;
  readonly bKind: IdentityKind;
  /** Whether an id is blocked, in which case the step is refused. */
  readonly blocked: boolean;
  /**
   * For `same_id`, the keys of the id under all other types. If `b` is linked with any of them, the step is ambiguous.
   */
  readonly otherKeys: readonly Buffer[];
}

/** A link fact whose ids were replaced by keys. */
export interface GraphFact {
  readonly environmentId: string;
  /** Offset in the link topic. */
  readonly offset: number;
  /** Epoch milliseconds. Stored as the link time. */
  readonly receivedAt: number;
  readonly eventTime: number;
  readonly steps: readonly GraphStep[];
  /** For an unlink, the distinct identities to split off. An unlink has no steps. */
  readonly unlink?: readonly NamedIdentity[];
}

/** Keys of all identities in the fact, possibly with duplicates. */
export const namedBy = ({ steps, unlink }: GraphFact): Buffer[] =>
  unlink?.map(({ key }) => key) ?? steps.flatMap(({ aKey, bKey }) => [aKey, bKey]);

export interface NamedIdentity {
  readonly key: Buffer;
  readonly kind: IdentityKind;
}

export interface StepRules {
  readonly keyOf: IdentityKeyer;
  readonly isBlocked: IsBlocked;
}

/**
 * Creates the function that splits a fact into steps. A typed identify first links the user id with the same untyped id
 * (`same_id`).
 */
export function createGraphFact(rules: StepRules): (fact: IdentityLinkRecord, offset: number) => GraphFact {
  const sameIdStep = (fact: IdentityLinkRecord, toKey: Buffer): GraphStep => {
    const keyOf = (kind: IdentityKind) => rules.keyOf(fact.environmentId, kind, fact.toId);
    return {
      link: 'same_id',
      aKey: toKey,
      aKind: fact.toKind,
      bKey: keyOf('untyped'),
      bKind: 'untyped',
      blocked: rules.isBlocked(fact.environmentId, fact.toId),
      // Computed lazily because the keys take seven hashes and are rarely needed.
      get otherKeys() {
        return IDENTITY_TYPES.filter((type) => type !== fact.toKind).map(keyOf);
      },
    };
  };
  const linkStep = (fact: IdentityLinkRecord, toKey: Buffer): GraphStep => ({
    link: fact.link,
    aKey: rules.keyOf(fact.environmentId, fact.fromKind, fact.fromId),
    aKind: fact.fromKind,
    bKey: toKey,
    bKind: fact.toKind,
    blocked: rules.isBlocked(fact.environmentId, fact.fromId) || rules.isBlocked(fact.environmentId, fact.toId),
    otherKeys: [],
  });

  return (fact, offset) => {
    const { environmentId, receivedAt, eventTime, unlink } = fact;
    if (unlink.length > 0)
      return { environmentId, offset, receivedAt, eventTime, steps: [], unlink: deduplicate(unlink) };
    const ruling = rulingOf(fact);
    if (ruling !== null) return { environmentId, offset, receivedAt, eventTime, steps: [toRulingStep(ruling)] };
    const steps: GraphStep[] = [];
    const toKey = rules.keyOf(fact.environmentId, fact.toKind, fact.toId);
    if (fact.link === 'identify' && fact.toKind !== 'untyped') steps.push(sameIdStep(fact, toKey));
    if (fact.fromId !== '') steps.push(linkStep(fact, toKey));
    return { environmentId, offset, receivedAt, eventTime, steps };
  };
}

/** Both sides are the identity that was ruled on. */
function toRulingStep({ verdict, key, kind }: Ruling): GraphStep {
  return { link: verdict, aKey: key, aKind: kind, bKey: key, bKind: kind, blocked: false, otherKeys: [] };
}

function deduplicate(named: readonly NamedIdentity[]): NamedIdentity[] {
  return [...new Map(named.map((identity) => [identity.key.toString('hex'), identity])).values()];
}
