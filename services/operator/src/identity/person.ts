import type { Member, People } from '@playline/people';
import { UnreachableError } from '../command.ts';
import type { Subject } from './subject.ts';

/** Whom an identity belongs to now. */
export interface Person {
  /** Of an identity that nobody has linked: its own. */
  readonly personKey: Buffer;
  readonly isLinked: boolean;
}

const NO_EPOCH =
  'Redis holds no identity graph that is whole (it has no epoch), so it cannot tell who belongs to whom: npm run ' +
  'rebuild puts back what it held; a new deployment is set up by npm run identity -- init';

/**
 * Asks the graph. An emptied one would call everybody a stranger, so the epoch must stand before and after.
 * @throws UnreachableError when it does not
 */
async function askWhole<T>(people: People, question: () => Promise<T>): Promise<T> {
  const epoch = await people.readEpoch();
  if (epoch === null) throw new UnreachableError(NO_EPOCH);
  const answer = await question();
  if ((await people.readEpoch()) !== epoch) throw new UnreachableError(NO_EPOCH);
  return answer;
}

/** @throws UnreachableError when the graph is not whole */
export async function readPerson(people: People, { environmentId, key }: Subject): Promise<Person> {
  const root = await askWhole(people, () => people.graph.rootOf(environmentId, key));
  return { personKey: root ?? key, isLinked: root !== null };
}

/** The person and everybody of it, by ascending key; nobody for an identity that is not linked. */
export interface Household extends Person {
  readonly members: readonly Member[];
}

/** @throws UnreachableError when the graph is not whole */
export async function readHousehold(people: People, subject: Subject): Promise<Household> {
  const { environmentId, key } = subject;
  return askWhole(people, async () => {
    const before = await people.graph.membersOf(environmentId, key);
    const root = await people.graph.rootOf(environmentId, key);
    // Linked between the two questions.
    const members = root !== null && before.length === 0 ? await people.graph.membersOf(environmentId, key) : before;
    return { personKey: root ?? key, isLinked: root !== null, members };
  });
}

/** Keys of everybody of a person: of one that nobody has linked its own. */
export function keysOf({ personKey, members }: Household): Buffer[] {
  return members.length === 0 ? [personKey] : members.map(({ key }) => key);
}
