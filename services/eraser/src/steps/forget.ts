import type { ErasureFence, KeptConsent } from '@playline/erasure';
import type { ChosenStatus, People } from '@playline/people';
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
  /** Removes the consents received up to the cut-off. */
  consents(persons: readonly ErasedPerson[]): Promise<Found>;
  /**
   * Stores later consents that a removed one had superseded.
   * @param kept consents of the erased people that ClickHouse still has after the sweep
   * @returns whether Redis was changed
   */
  restoreLater(kept: readonly KeptConsent[]): Promise<boolean>;
  /** Checks that nothing is left. @returns zero for each place @throws Error when anything is left */
  verify(persons: readonly ErasedPerson[]): Promise<Counts>;
}

/** Places of Redis, named as in `infra/redis/README.md`. */
const [IDENTITIES, CONSENTS] = ['redis.i', 'redis.c'];

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
    async consents(persons) {
      const found = new Map<ErasedPerson, Counts>();
      for (const person of persons) {
        const erased = await findConsents(consents, person);
        found.set(person, { [CONSENTS]: await consents.forget(person.environmentId, erased) });
      }
      return found;
    },
    async restoreLater(kept) {
      let isChanged = false;
      for (const { status, ...consent } of kept) {
        const outcome = await consents.apply({ ...consent, status: status as ChosenStatus });
        isChanged ||= outcome === 'applied';
      }
      return isChanged;
    },
    async verify(persons) {
      for (const person of persons) {
        const left = await Promise.all(person.identities.map((identity) => isLinked(graph, identity)));
        if (left.includes(true)) throw new Error('an identity is in the graph again');
        if ((await findConsents(consents, person)).length > 0) throw new Error('a consent is stored again');
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
async function findConsents(consents: People['consents'], { environmentId, identities }: ErasedPerson) {
  const cutoffs = new Map(identities.map(({ key, cutoffMs }) => [key.toString('latin1'), cutoffMs]));
  const stored = await consents.readStored(
    environmentId,
    identities.map(({ key }) => key),
  );
  return stored.filter(({ identityKey, receivedAt }) => receivedAt <= cutoffs.get(identityKey.toString('latin1'))!);
}
