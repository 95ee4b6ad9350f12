import type { ErasureFence, KeptConsent } from '@playline/erasure';
import type { ChosenStatus, ConsentPlace, HeldConsent, People } from '@playline/people';
import type { Counts } from './counts.ts';
import type { ErasedPerson } from './persons.ts';

/** What was removed from Redis, for each person. */
type Found = ReadonlyMap<ErasedPerson, Counts>;

/** What an erasure does in Redis. Every step may be repeated. @throws whatever the store throws */
export interface Forget {
  /**
   * Removes the identities from the graph, and published decisions from its outbox.
   * @param commits the linker's commits by partition
   */
  identities(persons: readonly ErasedPerson[], commits: ReadonlyMap<number, number>): Promise<Found>;
  /** Removes all consents except later ones, and restores those that a removed one has hidden. */
  consents(persons: readonly ErasedPerson[], later: LaterConsents): Promise<Found>;
  /** Checks that nothing is left. @returns zero for each place @throws Error when anything is left */
  verify(persons: readonly ErasedPerson[], later: LaterConsents): Promise<Counts>;
}

/** How to recognise a consent that is later than the erasure, and stays. */
export interface LaterConsents {
  /** Consents of the erased people that ClickHouse still has after the sweep. */
  readonly kept: readonly KeptConsent[];
  /** End of the consent log by partition. Records after it came when the fences were known, so they are later. */
  readonly ends: ReadonlyMap<number, number>;
}

/** Places of Redis, named as in `infra/redis/README.md`. */
const [IDENTITIES, CONSENTS] = ['redis.i', 'redis.c'];

const nameOf = ({ partition, offset }: ConsentPlace | KeptConsent['place']) => `${partition}/${offset}`;

/** Builds the steps. @param generation of the link topic */
export function createForget(
  { graph, consents }: Pick<People, 'graph' | 'consents'>,
  { generation }: { generation: number },
): Forget {
  return {
    async identities(persons, commits) {
      const environmentIds = new Set(persons.map(({ environmentId }) => environmentId));
      for (const [partition, committed] of commits)
        await graph.trim({ generation, partition }, committed - 1, environmentIds);
      // All facts of an earlier generation were decided before this one began.
      for (let earlier = 0; earlier < generation; earlier++)
        for (const partition of commits.keys())
          await graph.trim({ generation: earlier, partition }, Number.MAX_SAFE_INTEGER, environmentIds);
      const found = new Map<ErasedPerson, Counts>();
      for (const person of persons) {
        const { environmentId, closures, identities } = person;
        const { erasureId } = closures[0]!.request;
        const keys = identities.map(({ key }) => key);
        found.set(person, { [IDENTITIES]: await graph.forget({ environmentId, erasureId }, keys) });
      }
      return found;
    },
    async consents(persons, later) {
      const found = new Map<ErasedPerson, Counts>();
      for (const person of persons) {
        const judged = await findConsents(consents, person, later);
        found.set(person, { [CONSENTS]: await consents.forget(person.environmentId, judged) });
      }
      for (const { status, ...consent } of later.kept)
        await consents.apply({ ...consent, status: status as ChosenStatus });
      return found;
    },
    async verify(persons, later) {
      for (const person of persons) {
        const left = await Promise.all(person.identities.map((identity) => isLinked(graph, identity)));
        if (left.includes(true)) throw new Error('an identity is in the graph again');
        if ((await findConsents(consents, person, later)).length > 0) throw new Error('a consent is stored again');
      }
      return { [IDENTITIES]: 0, [CONSENTS]: 0 };
    },
  };
}

/**
 * Whether an identity is in the graph because of a link up to the cut-off. Later links may be in the graph already:
 * another erasure of the person with a later cut-off lets links up to that cut-off pass.
 */
async function isLinked(graph: People['graph'], { environmentId, key, cutoffMs }: ErasureFence) {
  if ((await graph.rootOf(environmentId, key)) === null) return false;
  const members = await graph.membersOf(environmentId, key);
  return members.some((member) => member.key.equals(key) && member.linkedAt <= cutoffMs);
}

/** Stored consents of a person, without the later ones. */
async function findConsents(
  consents: People['consents'],
  { environmentId, identities }: ErasedPerson,
  { kept, ends }: LaterConsents,
) {
  const places = new Set(kept.filter((each) => each.environmentId === environmentId).map(({ place }) => nameOf(place)));
  // A consent logged by the cut-off was received by then. The end of a log that was made anew does not show that.
  const cutoffs = new Map(identities.map(({ key, cutoffMs }) => [key.toString('latin1'), cutoffMs]));
  const isJudged = ({ identityKey, place: { partition, offset, loggedAtMs } }: HeldConsent) =>
    offset < (ends.get(partition) ?? 0) || loggedAtMs <= cutoffs.get(identityKey.toString('latin1'))!;
  const stored = await consents.readStored(
    environmentId,
    identities.map(({ key }) => key),
  );
  return stored.filter((consent) => isJudged(consent) && !places.has(nameOf(consent.place)));
}
