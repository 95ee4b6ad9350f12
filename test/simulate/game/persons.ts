import type { IdentityKind } from '@playline/contracts';
import { isPlaceholder } from '@playline/people';

export interface Identity {
  readonly kind: IdentityKind;
  readonly id: string;
}

export interface LinkFact {
  readonly link: 'identify' | 'alias';
  readonly from: Identity;
  readonly to: Identity;
}

/** A person has at most one identity of these kinds, as in the linker's default settings. */
const UNIQUE_KINDS: readonly IdentityKind[] = ['passport'];

interface Component {
  members: string[];
  /** Ids per kind, except for anonymous ids. */
  values: Map<IdentityKind, Set<string>>;
}

export type PersonsModel = ReturnType<typeof createPersonsModel>;

export function identityKeyOf({ kind, id }: Identity): string {
  return `${kind} ${id.trim()}`;
}

export const isBlocked = isPlaceholder;

export function ownerOf(user: Identity | null, anonymousId: string): Identity | null {
  if (user !== null && !isBlocked(user.id)) return user;
  return isBlocked(anonymousId) ? null : { kind: 'anonymous', id: anonymousId };
}

function createComponents() {
  const components = new Map<string, Component>();
  return {
    of: (identity: Identity): Component => {
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
    merge: (a: Component, b: Component): void => {
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

export function createPersonsModel() {
  const components = createComponents();

  const join = ({ link, from, to }: LinkFact) => {
    if (isBlocked(from.id) || isBlocked(to.id)) return;
    const [a, b] = [components.of(from), components.of(to)];
    // After an identify with a different user, the device is shared and still belongs to its first user.
    const kinds = link === 'identify' ? [...b.values.keys()] : UNIQUE_KINDS;
    if (a !== b && !conflict(a, b, kinds)) components.merge(a, b);
  };

  /** Joins a typed user id with the matching untyped id, unless a different kind was linked to the untyped id first. */
  const joinSameId = (user: Identity) => {
    const untyped: Identity = { kind: 'untyped', id: user.id };
    const same = components.of(untyped);
    const id = user.id.trim();
    const isTaken = [...same.values].some(([kind, ids]) => kind !== 'untyped' && kind !== user.kind && ids.has(id));
    if (!isTaken || same === components.of(user)) join({ link: 'identify', from: user, to: untyped });
  };

  return {
    add: (identity: Identity): void => void components.of(identity),
    apply: (fact: LinkFact): void => {
      // Like the linker, links the untyped id first, because this may turn the device into a shared device.
      if (fact.link === 'identify' && fact.to.kind !== 'untyped') joinSameId(fact.to);
      join(fact);
    },
    /** @returns equal keys if and only if the identities belong to one person */
    personOf: (identity: Identity): string => components.of(identity).members[0]!,
  };
}

function conflict(a: Component, b: Component, kinds: readonly IdentityKind[]): boolean {
  return kinds.some((kind) => {
    const [left, right] = [a.values.get(kind), b.values.get(kind)];
    return left !== undefined && right !== undefined && new Set([...left, ...right]).size > 1;
  });
}

export type PersonTracker = ReturnType<typeof createPersonTracker>;

export function createPersonTracker() {
  const model = createPersonsModel();
  const owners = new Map<string, { identity: Identity; household: number }>();
  const uncertain = new Set<number>();
  const isUncertain = (identity: Identity) => {
    const owner = owners.get(identityKeyOf(identity));
    // An unknown owner may come from an unacknowledged batch of an uncertain household.
    return owner === undefined ? uncertain.size > 0 : uncertain.has(owner.household);
  };
  return {
    model,
    owners,
    /** Adds an acknowledged message. Within a household, call in order of acknowledgement. */
    accept: (household: number, { owner, fact }: { owner: Identity | null; fact: LinkFact | null }): void => {
      if (owner !== null) {
        model.add(owner);
        owners.set(identityKeyOf(owner), { identity: owner, household });
      }
      if (fact !== null) model.apply(fact);
    },
    markUncertain: (household: number): void => void uncertain.add(household),
    isUncertain,
    get uncertainHouseholds() {
      return uncertain.size;
    },
    persons: (): number => {
      const persons = new Set<string>();
      for (const { identity } of owners.values()) if (!isUncertain(identity)) persons.add(model.personOf(identity));
      return persons.size;
    },
  };
}
