import type { ConsentStore } from './consents.ts';
import type { IdentityGraph, Member } from './graph.ts';
import type { ErasureGuards } from './guards.ts';
import type { PeopleRebuild } from './rebuild.ts';

/**
 * Everything that one store answers about people. One epoch guards all of it: without an epoch the store is empty or
 * half rebuilt, and its answers would separate linked people and forget refused consents.
 */
export interface People {
  readonly graph: IdentityGraph;
  readonly consents: ConsentStore;
  readonly guards: ErasureGuards;
  readonly rebuild: PeopleRebuild;
  /** Null while the store is empty or half rebuilt. */
  readEpoch(): Promise<string | null>;
  /** Whether the store has an epoch and all fences, and accepts writes. */
  ready(): Promise<boolean>;
  /**
   * Whether the store accepts writes; false also when it does not answer. Never throws, and resolves within a second.
   */
  takesWrites(): Promise<boolean>;
  /**
   * Asks the store to rewrite its log, so that no file of it contains what was forgotten. Resolves when the request is
   * made, not when it is done.
   * @throws a fault of the store, which may not allow the request
   */
  rewriteLog(): Promise<void>;
  /** Epoch milliseconds by the wall clock of the store. */
  readClockMs(): Promise<number>;
  close(): Promise<void>;
}

/**
 * Redis has no epoch: it is empty, or a rebuild is not finished. Its answers would separate linked people and forget
 * refused consents.
 */
export class MissingEpochFault extends Error {
  override readonly name = 'MissingEpochFault';
  constructor() {
    super('Redis has no epoch of the identities: initialise or rebuild it');
  }
}

/**
 * Redis was restarted or promoted and may lack fences of erased people, or have data of them again. An eraser sets the
 * fences again; until then no link is applied and no consent is read.
 */
export class MissingFencesFault extends Error {
  override readonly name = 'MissingFencesFault';
  constructor() {
    super('Redis was restarted and may lack fences of erased people: an eraser must be running, which sets them again');
  }
}

/**
 * Something that is allowed only under an erasure's hold was tried without it: the erasure is finished, or its hold
 * must be placed again.
 */
export class MissingHoldFault extends Error {
  override readonly name = 'MissingHoldFault';
  constructor() {
    super('the hold of this erasure does not stand');
  }
}

/** Redis was restarted during a rebuild and may have lost a part of what was loaded. */
export class RestartedFault extends Error {
  override readonly name = 'RestartedFault';
  constructor() {
    super('Redis was restarted during the rebuild: empty it (FLUSHDB) and rebuild it again');
  }
}

/** Redis is in use, but a rebuild needs one without an epoch. */
export class EpochPresentFault extends Error {
  override readonly name = 'EpochPresentFault';
  constructor() {
    super('Redis has an epoch of the identities: only one without is loaded');
  }
}

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
export interface PersonMembers extends Person {
  readonly members: readonly Member[];
}

/** Source of answers about persons. */
export type PersonSource = Pick<People, 'readEpoch'> & { readonly graph: Pick<IdentityGraph, 'rootOf' | 'membersOf'> };

/**
 * Asks the graph. An emptied graph would answer that nobody is linked, so there must be an epoch before and after the
 * question.
 * @throws MissingEpochFault when there is none
 */
async function queryComplete<T>(people: PersonSource, question: () => Promise<T>): Promise<T> {
  const epoch = await people.readEpoch();
  if (epoch === null) throw new MissingEpochFault();
  const answer = await question();
  if ((await people.readEpoch()) !== epoch) throw new MissingEpochFault();
  return answer;
}

/** @throws MissingEpochFault when the graph is not whole */
export async function readPerson(people: PersonSource, { environmentId, key }: IdentityInEnvironment): Promise<Person> {
  const root = await queryComplete(people, () => people.graph.rootOf(environmentId, key));
  return { personKey: root ?? key, isLinked: root !== null };
}

/** @throws MissingEpochFault when the graph is not whole */
export async function readPersonMembers(
  people: PersonSource,
  { environmentId, key }: IdentityInEnvironment,
): Promise<PersonMembers> {
  return queryComplete(people, async () => {
    const before = await people.graph.membersOf(environmentId, key);
    const root = await people.graph.rootOf(environmentId, key);
    // It was linked between the two questions.
    const members = root !== null && before.length === 0 ? await people.graph.membersOf(environmentId, key) : before;
    return { personKey: root ?? key, isLinked: root !== null, members };
  });
}

/** Keys of all members of a person; for one that is not linked, its own key. */
export function keysOf({ personKey, members }: PersonMembers): Buffer[] {
  return members.length === 0 ? [personKey] : members.map(({ key }) => key);
}

/** The two sides of a split: who leaves a person and who stays. */
export interface PersonSplit {
  readonly personKey: Buffer;
  readonly leaving: readonly Member[];
  readonly staying: readonly Member[];
}

/** Why nothing can be split, for people. */
export const SPLIT_BLOCKERS = {
  strangers: 'They are not of one person: only what is wrongly together can be split.',
  alone: 'Nobody has linked it: it is a person of its own already.',
  everybody: 'That is everybody of the person: there is nothing to split.',
} as const;
export type SplitBlocker = keyof typeof SPLIT_BLOCKERS;

/**
 * Who would leave and who would stay if these were split off.
 * @param keys the first is the one whose person `household` is
 */
export function splitPerson(
  keys: readonly Buffer[],
  { personKey, members }: PersonMembers,
): PersonSplit | SplitBlocker {
  const isNamed = ({ key }: Pick<Member, 'key'>) => keys.some((one) => one.equals(key));
  const gone = members.filter(isNamed);
  const stayed = members.filter((member) => !isNamed(member));
  const isStrange = (key: Buffer, at: number) =>
    at > 0 && !key.equals(keys[0]!) && !members.some((one) => one.key.equals(key));
  if (keys.some(isStrange)) return 'strangers';
  if (members.length === 0) return 'alone';
  return stayed.length === 0 ? 'everybody' : { personKey, leaving: gone, staying: stayed };
}
