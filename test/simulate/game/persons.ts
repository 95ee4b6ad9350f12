import type { IdentityKind } from '@playline/contracts';
import { isPlaceholder } from '@playline/people';

/** An identity in the messages of the run. */
export interface Identity {
  readonly kind: IdentityKind;
  readonly id: string;
}

/** What an identify or an alias says: these two are one person. */
export interface LinkFact {
  readonly link: 'identify' | 'alias';
  readonly from: Identity;
  readonly to: Identity;
}

export type LinkOutcome = 'linked' | 'unchanged' | 'blocked' | 'shared_device' | 'unique_type' | 'ambiguous';

/** Kinds of which one person has a single value, as in the linker's default settings. */
const UNIQUE_KINDS: readonly IdentityKind[] = ['passport'];

interface Component {
  members: string[];
  /** Values of each kind, except anonymous ones, of which a person may have many. */
  values: Map<IdentityKind, Set<string>>;
}

/** The simulator's own model of persons, built from acknowledged facts in the order of their publication. */
export interface PersonsModel {
  /** Adds the identity, as a person of its own if it is new. */
  see(identity: Identity): void;
  apply(fact: LinkFact): LinkOutcome;
  /** Equal for two identities if and only if they are one person. */
  personOf(identity: Identity): string;
}

export function identityKeyOf({ kind, id }: Identity): string {
  return `${kind} ${id.trim()}`;
}

/** Values that link no one and own nothing: they come from client bugs. */
export const isBlocked = isPlaceholder;

/** Owner of a message with these ids. */
export function ownerOf(user: Identity | null, anonymousId: string): Identity | null {
  if (user !== null && !isBlocked(user.id)) return user;
  return isBlocked(anonymousId) ? null : { kind: 'anonymous', id: anonymousId };
}

interface Components {
  of(identity: Identity): Component;
  merge(a: Component, b: Component): void;
}

function createComponents(): Components {
  const components = new Map<string, Component>();
  return {
    of: (identity) => {
      const key = identityKeyOf(identity);
      let component = components.get(key);
      if (component === undefined) {
        const values = new Map<IdentityKind, Set<string>>();
        if (identity.kind !== 'anonymous') values.set(identity.kind, new Set([identity.id.trim()]));
        component = { members: [key], values };
        components.set(key, component);
      }
      return component;
    },
    merge: (a, b) => {
      const [into, from] = a.members.length >= b.members.length ? [a, b] : [b, a];
      for (const member of from.members) {
        into.members.push(member);
        components.set(member, into);
      }
      for (const [kind, values] of from.values) {
        into.values.set(kind, new Set([...(into.values.get(kind) ?? []), ...values]));
      }
    },
  };
}

export function createPersonsModel(): PersonsModel {
  const components = createComponents();

  const join = (link: 'identify' | 'alias', from: Identity, to: Identity): LinkOutcome => {
    if (isBlocked(from.id) || isBlocked(to.id)) return 'blocked';
    const [a, b] = [components.of(from), components.of(to)];
    if (a === b) return 'unchanged';
    if (link === 'identify' && conflict(a, b, [...b.values.keys()])) return 'shared_device';
    if (link === 'alias' && conflict(a, b, UNIQUE_KINDS)) return 'unique_type';
    components.merge(a, b);
    return 'linked';
  };

  /** A typed user id is the same person as the untyped id with the same text, unless another kind came first. */
  const joinSameId = (user: Identity): LinkOutcome => {
    const untyped: Identity = { kind: 'untyped', id: user.id };
    const tied = components.of(untyped);
    const id = user.id.trim();
    const other = [...tied.values].some(([kind, values]) => kind !== 'untyped' && kind !== user.kind && values.has(id));
    return other && tied !== components.of(user) ? 'ambiguous' : join('identify', user, untyped);
  };

  return {
    see: (identity) => void components.of(identity),
    apply: (fact) => {
      // As in the linker, the user's own untyped id comes first: it may be what makes the device a shared one.
      if (fact.link === 'identify' && fact.to.kind !== 'untyped') joinSameId(fact.to);
      return join(fact.link, fact.from, fact.to);
    },
    personOf: (identity) => components.of(identity).members[0]!,
  };
}

/** Whether both sides have values of one of these kinds, other than a single common one. */
function conflict(a: Component, b: Component, kinds: readonly IdentityKind[]): boolean {
  return kinds.some((kind) => {
    const [left, right] = [a.values.get(kind), b.values.get(kind)];
    return left !== undefined && right !== undefined && new Set([...left, ...right]).size > 1;
  });
}

/** The owners of accepted messages, and the model of which identities are one person. */
export interface Cast {
  readonly model: PersonsModel;
  readonly owners: ReadonlyMap<string, { readonly identity: Identity; readonly household: number }>;
  /** Adds one acknowledged message; call in the order of acknowledgement within a household. */
  accept(household: number, message: { owner: Identity | null; fact: LinkFact | null }): void;
  /** A batch of the household was never acknowledged, so its persons are unknown. */
  doubt(household: number): void;
  isDoubtful(identity: Identity): boolean;
  readonly doubtfulHouseholds: number;
  /** Number of persons that own an accepted message, without those of doubtful households. */
  persons(): number;
}

export function createCast(): Cast {
  const model = createPersonsModel();
  const owners = new Map<string, { identity: Identity; household: number }>();
  const doubtful = new Set<number>();
  const isDoubtful = (identity: Identity) => {
    const owner = owners.get(identityKeyOf(identity));
    // With a doubtful household, an unknown owner may come from a batch that was stored without an answer.
    return owner === undefined ? doubtful.size > 0 : doubtful.has(owner.household);
  };
  return {
    model,
    owners,
    accept: (household, { owner, fact }) => {
      if (owner !== null) {
        model.see(owner);
        owners.set(identityKeyOf(owner), { identity: owner, household });
      }
      if (fact !== null) model.apply(fact);
    },
    doubt: (household) => void doubtful.add(household),
    isDoubtful,
    get doubtfulHouseholds() {
      return doubtful.size;
    },
    persons: () => {
      const persons = new Set<string>();
      for (const { identity } of owners.values()) if (!isDoubtful(identity)) persons.add(model.personOf(identity));
      return persons.size;
    },
  };
}
