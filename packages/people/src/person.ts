import type { IdentityGraph, Member } from './graph.ts';
import type { People } from './people.ts';
import { MissingEpochFault } from './people.ts';

/** An identity of one environment. */
export interface IdentityInEnvironment {
  readonly environmentId: string;
  readonly key: Buffer;
}

/** The person that an identity belongs to now. */
export interface Person {
  /** For an identity that is not linked: its own key. */
  readonly personKey: Buffer;
  readonly isLinked: boolean;
}

/** The person and all its members by ascending key; none for an identity that is not linked. */
export interface Household extends Person {
  readonly members: readonly Member[];
}

/** Source of answers about persons. */
export type PersonSource = Pick<People, 'readEpoch'> & { readonly graph: Pick<IdentityGraph, 'rootOf' | 'membersOf'> };

/**
 * Asks the graph. An emptied graph would answer that nobody is linked, so there must be an epoch before and after the
 * question.
 * @throws MissingEpochFault when there is none
 */
async function askWhole<T>(people: PersonSource, question: () => Promise<T>): Promise<T> {
  const epoch = await people.readEpoch();
  if (epoch === null) throw new MissingEpochFault();
  const answer = await question();
  if ((await people.readEpoch()) !== epoch) throw new MissingEpochFault();
  return answer;
}

/** @throws MissingEpochFault when the graph is not whole */
export async function readPerson(people: PersonSource, { environmentId, key }: IdentityInEnvironment): Promise<Person> {
  const root = await askWhole(people, () => people.graph.rootOf(environmentId, key));
  return { personKey: root ?? key, isLinked: root !== null };
}

/** @throws MissingEpochFault when the graph is not whole */
export async function readHousehold(
  people: PersonSource,
  { environmentId, key }: IdentityInEnvironment,
): Promise<Household> {
  return askWhole(people, async () => {
    const before = await people.graph.membersOf(environmentId, key);
    const root = await people.graph.rootOf(environmentId, key);
    // It was linked between the two questions.
    const members = root !== null && before.length === 0 ? await people.graph.membersOf(environmentId, key) : before;
    return { personKey: root ?? key, isLinked: root !== null, members };
  });
}

/** Keys of all members of a person; for one that is not linked, its own key. */
export function keysOf({ personKey, members }: Household): Buffer[] {
  return members.length === 0 ? [personKey] : members.map(({ key }) => key);
}

/** The two sides of a split: who leaves a person and who stays. */
export interface Parting {
  readonly personKey: Buffer;
  readonly gone: readonly Member[];
  readonly stayed: readonly Member[];
}

/** Why nothing can be split, for people. */
export const NO_PARTING = {
  strangers: 'They are not of one person: only what is wrongly together can be split.',
  alone: 'Nobody has linked it: it is a person of its own already.',
  everybody: 'That is everybody of the person: there is nothing to split.',
} as const;
export type NoParting = keyof typeof NO_PARTING;

/**
 * Who would leave and who would stay if these were split off.
 * @param keys the first is the one whose person `household` is
 */
export function toParting(keys: readonly Buffer[], { personKey, members }: Household): Parting | NoParting {
  const isNamed = ({ key }: Pick<Member, 'key'>) => keys.some((one) => one.equals(key));
  const gone = members.filter(isNamed);
  const stayed = members.filter((member) => !isNamed(member));
  const isStrange = (key: Buffer, at: number) =>
    at > 0 && !key.equals(keys[0]!) && !members.some((one) => one.key.equals(key));
  if (keys.some(isStrange)) return 'strangers';
  if (members.length === 0) return 'alone';
  return stayed.length === 0 ? 'everybody' : { personKey, gone, stayed };
}
