import { IDENTITY_TYPES } from '@playline/contracts';
import type { GraphLimits } from '../graph.ts';
import type { FactOptions, Name } from './scenario.ts';

interface Person {
  /** The name whose key is the person key. */
  root: Name;
  readonly members: Map<Name, number>;
}

interface Split {
  readonly atMs: number;
  readonly leaving: Set<Name>;
  readonly stayed: Set<Name>;
}

export interface NaiveRules {
  readonly limits: GraphLimits;
  /** Compares two names by their keys. */
  compare(a: Name, b: Name): number;
}

const kindOf = (name: Name) => name.slice(0, name.indexOf(':'));
const idOf = (name: Name) => name.slice(name.indexOf(':') + 1);
const isBlocked = (name: Name) => idOf(name) === 'null';

/** A naive reference model that represents persons as lists of names. */
export class NaivePeople {
  readonly #rules: NaiveRules;
  #persons: Person[] = [];
  readonly #fences = new Map<Name, number>();
  readonly #holds = new Map<Name, number>();
  readonly #splits: Split[] = [];
  /** The first identity and time of each unlink without effect. */
  #ineffectiveUnlinks: { first: Name; atMs: number }[] = [];

  constructor(rules: NaiveRules) {
    this.#rules = rules;
  }

  personOf(name: Name): Person | undefined {
    return this.#persons.find(({ members }) => members.has(name));
  }

  /** Number of unlink sides stored for the name, including unlinks without effect. */
  splitsOf(name: Name): number {
    const splits = this.#splits.filter(({ leaving, stayed }) => leaving.has(name) || stayed.has(name));
    return splits.length + this.#ineffectiveUnlinks.filter(({ first }) => first === name).length;
  }

  /** Erases all of a person's members and fences them up to the cut-off. */
  erase(name: Name, cutoffMs: number): Name[] {
    const erased = [...(this.personOf(name)?.members.keys() ?? [name])];
    for (const member of erased) {
      this.personOf(member)?.members.delete(member);
      this.#fences.set(member, cutoffMs);
      for (const { leaving, stayed } of this.#splits) for (const side of [leaving, stayed]) side.delete(member);
    }
    this.#persons = this.#persons.filter(({ members }) => members.size > 0);
    this.#ineffectiveUnlinks = this.#ineffectiveUnlinks.filter(({ first }) => !erased.includes(first));
    return erased;
  }

  hold(name: Name, cutoffMs: number): void {
    this.#holds.set(name, cutoffMs);
  }
  release(name: Name): void {
    this.#holds.delete(name);
  }

  #isHeld(fact: FactOptions): boolean {
    const { link, from, to, extra = [] } = fact;
    const untyped: Name[] = link === 'identify' ? [`untyped:${idOf(to)}`] : [];
    const named = link === 'unlink' ? [to, ...extra] : [to, ...untyped, ...(from === undefined ? [] : [from])];
    const affected = named.flatMap((name) => [...(this.personOf(name)?.members.keys() ?? [name])]);
    return affected.some((name) => fact.receivedAt! > (this.#holds.get(name) ?? Number.POSITIVE_INFINITY));
  }

  /** Returns the result of each step, in the format of `describeOutcome`. */
  decide(fact: FactOptions): string[] {
    if (this.#isHeld(fact)) return ['parked'];
    if (fact.link === 'unlink') {
      const outcome = this.#unlink(fact);
      const isIneffective = outcome !== 'unlinked' && !this.#isFenced(fact.to, fact);
      if (isIneffective) this.#ineffectiveUnlinks.push({ first: fact.to, atMs: fact.receivedAt! });
      return [outcome];
    }
    const { link, from, to } = fact;
    const outcomes: string[] = [];
    const untyped: Name = `untyped:${idOf(to)}`;
    if (link === 'identify' && kindOf(to) !== 'untyped')
      outcomes.push(this.#join(fact, { a: to, b: untyped, link: 'same_id' }));
    if (from !== undefined) outcomes.push(this.#join(fact, { a: from, b: to, link }));
    return outcomes;
  }

  #join(fact: FactOptions, { a, b, link }: { a: Name; b: Name; link: 'identify' | 'alias' | 'same_id' }): string {
    if (isBlocked(a) || isBlocked(b)) return 'refused: blocked';
    if (this.#isFenced(a, fact) || this.#isFenced(b, fact)) return 'refused: fenced';
    for (const name of [a, b]) this.#rejoin(name, fact.receivedAt!);
    const [sideA, sideB] = [a, b].map(
      (name) => this.personOf(name) ?? { root: name, members: new Map([[name, fact.receivedAt!]]) },
    );
    if (sideA!.members.has(b)) return 'unchanged';
    const others = IDENTITY_TYPES.map((type): Name => `${type}:${idOf(a)}`).filter((name) => name !== a);
    if (link === 'same_id' && others.some((name) => sideB!.members.has(name))) return 'ambiguous';
    const reason = this.#refusalOf(fact, link, [sideA!, sideB!]);
    if (reason !== null) return `refused: ${reason}`;
    const [kept, lost] = this.#isLarger(sideB!, sideA!) ? [sideB!, sideA!] : [sideA!, sideB!];
    this.#persons = this.#persons.filter((person) => person !== kept && person !== lost);
    this.#persons.push({ root: kept.root, members: new Map([...kept.members, ...lost.members]) });
    return 'linked';
  }

  /** An erased identity rejoins the identities that still have its key as person key. */
  #rejoin(name: Name, atMs: number): void {
    if (this.personOf(name) === undefined) this.#persons.find(({ root }) => root === name)?.members.set(name, atMs);
  }

  #isLarger(a: Person, b: Person): boolean {
    if (a.members.size !== b.members.size) return a.members.size > b.members.size;
    return this.#rules.compare(a.root, b.root) < 0;
  }

  #isFenced(name: Name, { receivedAt, eventTime }: FactOptions): boolean {
    return Math.min(receivedAt!, eventTime!) <= (this.#fences.get(name) ?? -1);
  }

  #refusalOf(fact: FactOptions, link: string, [a, b]: [Person, Person]): string | null {
    const { limits } = this.#rules;
    const names = [...a.members.keys(), ...b.members.keys()];
    const isSeparatedBy = (split: Split) =>
      Math.min(fact.receivedAt!, fact.eventTime!) <= split.atMs &&
      [
        [a, b],
        [b, a],
      ].some(
        ([leavingSide, stayingSide]) =>
          [...leavingSide!.members.keys()].some((name) => split.leaving.has(name)) &&
          [...stayingSide!.members.keys()].some((name) => split.stayed.has(name)),
      );
    if (this.#splits.some(isSeparatedBy)) return 'unlinked';
    if (names.length > limits.identitiesMax) return 'too_many_identities';
    const both = [...a.members.keys()]
      .map(kindOf)
      .filter((kind) => [...b.members.keys()].some((name) => kindOf(name) === kind));
    const unique: readonly string[] = limits.uniqueTypes;
    if (link === 'alias' && both.some((kind) => unique.includes(kind))) return 'two_known_users';
    if (link !== 'alias' && both.some((kind) => kind !== 'anonymous')) return 'shared_device';
    const since = fact.receivedAt! - limits.anonymousWindowMs;
    const recent = [...a.members, ...b.members].filter(
      ([name, linkedAt]) => kindOf(name) === 'anonymous' && linkedAt > since,
    );
    return recent.length > limits.anonymousIdsMax ? 'too_many_anonymous_ids' : null;
  }

  #unlink(fact: FactOptions): string {
    const names = [...new Set([fact.to, ...(fact.extra ?? [])])];
    if (names.some((name) => this.#isFenced(name, fact))) return 'refused: fenced';
    const isSame = ({ atMs }: { atMs: number }) => atMs === fact.receivedAt;
    if (this.#splits.some((one) => isSame(one) && one.leaving.has(fact.to))) return 'unchanged';
    if (this.#ineffectiveUnlinks.some((one) => isSame(one) && one.first === fact.to)) return 'unchanged';
    const person = this.personOf(fact.to);
    if (names.some((name) => name !== fact.to && (person === undefined || !person.members.has(name))))
      return 'refused: not_one_person';
    if (person === undefined || person.members.size === names.length) return 'unchanged';
    const sides = [true, false].map(
      (isNamed) => new Map([...person.members].filter(([name]) => names.includes(name) === isNamed)),
    );
    const [leaving, stayed] = sides as [Map<Name, number>, Map<Name, number>];
    const least = (members: Map<Name, number>) => [...members.keys()].sort(this.#rules.compare)[0]!;
    const rootSide = leaving.has(person.root) ? leaving : stayed;
    this.#persons = this.#persons.filter((one) => one !== person);
    for (const members of [leaving, stayed])
      this.#persons.push({ root: members === rootSide ? person.root : least(members), members });
    this.#splits.push({ atMs: fact.receivedAt!, leaving: new Set(leaving.keys()), stayed: new Set(stayed.keys()) });
    return 'unlinked';
  }
}
