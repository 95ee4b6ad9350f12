/** The people store: its interface, faults and person queries. */
import type { ConsentStore } from './consents.ts';
import type { IdentityGraph, Member } from './graph.ts';
import type { ErasureGuards } from './guards.ts';
import type { PeopleRebuild } from './rebuild.ts';

/** All people data. Without an epoch, the store is empty or its rebuild has not finished. */
export interface People {
  readonly graph: IdentityGraph;
  readonly consents: ConsentStore;
  readonly guards: ErasureGuards;
  readonly rebuild: PeopleRebuild;
  /**
   * Returns null if the store is empty or its rebuild has not finished.
   * @param environmentId to check only the part of the store that contains this environment
   */
  readEpoch(environmentId?: string): Promise<string | null>;
  /** Whether the store has an epoch and all fences, and accepts writes. */
  ready(): Promise<boolean>;
  /** Whether the store responds and accepts writes. Never throws, and resolves within a second. */
  takesWrites(): Promise<boolean>;
  /**
   * Starts a rewrite of the append-only file, which removes deleted data from disk.
   * @throws a store fault; the store may not permit rewrites
   */
  rewriteLog(): Promise<void>;
  /** The store's wall clock, in epoch milliseconds. */
  readClockMs(): Promise<number>;
  close(): Promise<void>;
}

/** Redis is empty, or a rebuild has not finished. */
export class MissingEpochFault extends Error {
  override readonly name = 'MissingEpochFault';
  constructor() {
    super('Redis has no identity epoch. Run "npm run identity -- init" for a new deployment, or "npm run rebuild"');
  }
}

/**
 * Redis was restarted or promoted and may lack fences. Until an eraser sets them, links are not applied and consents
 * are not read.
 */
export class MissingFencesFault extends Error {
  override readonly name = 'MissingFencesFault';
  constructor() {
    super('Redis was restarted and may lack fences of erased people. Start an eraser to restore them');
  }
}

/** The erasure has finished, or its hold must be recreated. */
export class MissingHoldFault extends Error {
  override readonly name = 'MissingHoldFault';
  constructor() {
    super('the erasure has no hold');
  }
}

/** Redis was restarted during a rebuild and may have lost data. */
export class RestartedFault extends Error {
  override readonly name = 'RestartedFault';
  constructor() {
    super('Redis was restarted during the rebuild. Empty Redis (FLUSHDB) and repeat the rebuild');
  }
}

/** Redis has an epoch, which a rebuild does not permit. */
export class EpochPresentFault extends Error {
  override readonly name = 'EpochPresentFault';
  constructor() {
    super('Redis already has an epoch. Empty Redis before the rebuild');
  }
}

export interface IdentityInEnvironment {
  readonly environmentId: string;
  readonly key: Buffer;
}

export interface Person {
  /** The identity's own key if it has no links. */
  readonly personKey: Buffer;
  readonly isLinked: boolean;
}

/** A person with its members, sorted by key. An identity without links has no members. */
export interface PersonMembers extends Person {
  readonly members: readonly Member[];
}

export type PersonSource = Pick<People, 'readEpoch'> & { readonly graph: Pick<IdentityGraph, 'rootOf' | 'membersOf'> };

/** Runs a query between two epoch checks. @throws MissingEpochFault */
async function queryComplete<T>(people: PersonSource, environmentId: string, query: () => Promise<T>): Promise<T> {
  const epoch = await people.readEpoch(environmentId);
  if (epoch === null) throw new MissingEpochFault();
  const result = await query();
  if ((await people.readEpoch(environmentId)) !== epoch) throw new MissingEpochFault();
  return result;
}

/** @throws MissingEpochFault */
export async function readPerson(people: PersonSource, { environmentId, key }: IdentityInEnvironment): Promise<Person> {
  const root = await queryComplete(people, environmentId, () => people.graph.rootOf(environmentId, key));
  return { personKey: root ?? key, isLinked: root !== null };
}

/** @throws MissingEpochFault */
export async function readPersonMembers(
  people: PersonSource,
  { environmentId, key }: IdentityInEnvironment,
): Promise<PersonMembers> {
  return queryComplete(people, environmentId, async () => {
    const before = await people.graph.membersOf(environmentId, key);
    const root = await people.graph.rootOf(environmentId, key);
    // Reread if the identity was linked between the two queries.
    const members = root !== null && before.length === 0 ? await people.graph.membersOf(environmentId, key) : before;
    return { personKey: root ?? key, isLinked: root !== null, members };
  });
}

/** Keys of all members. For an identity without links, only its own key. */
export function keysOf({ personKey, members }: PersonMembers): Buffer[] {
  return members.length === 0 ? [personKey] : members.map(({ key }) => key);
}

export interface PersonSplit {
  readonly personKey: Buffer;
  readonly leaving: readonly Member[];
  readonly staying: readonly Member[];
}

export const SPLIT_BLOCKERS = {
  notOnePerson: 'The identities do not belong to one person. Specify identities of one person.',
  notLinked: 'The identity is already a separate person, so there is nothing to split.',
  wholePerson: "These are all of the person's identities, so there is nothing to split. Omit at least one.",
} as const;
export type SplitBlocker = keyof typeof SPLIT_BLOCKERS;

/**
 * Computes both sides of an unlink.
 * @param keys the identities to split off; the first key must belong to the person
 */
export function splitPerson(
  keys: readonly Buffer[],
  { personKey, members }: PersonMembers,
): PersonSplit | SplitBlocker {
  const isNamed = ({ key }: Pick<Member, 'key'>) => keys.some((one) => one.equals(key));
  const leaving = members.filter(isNamed);
  const staying = members.filter((member) => !isNamed(member));
  const isStranger = (key: Buffer, at: number) =>
    at > 0 && !key.equals(keys[0]!) && !members.some((one) => one.key.equals(key));
  if (keys.some(isStranger)) return 'notOnePerson';
  if (members.length === 0) return 'notLinked';
  return staying.length === 0 ? 'wholePerson' : { personKey, leaving, staying };
}
