import type { ErasureGuards } from '@playline/people';

/** A fact that waits for as long as an erasure holds somebody whom it touches. */
export interface HeldFact {
  readonly environmentId: string;
  /** Epoch milliseconds. */
  readonly receivedAt: number;
  /** Identity keys of all its steps, hexadecimal. */
  readonly keys: readonly string[];
  /** The one of them whose person was held when this was asked last; null while nobody has asked. */
  heldBy: string | null;
}

/** The time after which links of an identity wait, by its key; null where nobody holds it. Only keys that were asked for. */
type Answers = Map<string, number | null>;

/**
 * Finds the facts that no erasure holds up any more, by the rule by which the graph would decide now. Of a fact that
 * was held only one key is asked for, the one whose person was held; it is mostly the same for all facts of a person.
 * All keys are asked for when the fact is new, or when that one key is free.
 * @throws a fault of the guards
 */
export async function findFree<F extends HeldFact>(
  facts: readonly F[],
  guards: Pick<ErasureGuards, 'heldFrom'>,
): Promise<F[]> {
  const free: F[] = [];
  for (const [environmentId, own] of Map.groupBy(facts, (fact) => fact.environmentId)) {
    const answers: Answers = new Map();
    const ask = async (keys: Iterable<string>) => {
      const asked = [...new Set(keys)].filter((key) => !answers.has(key));
      if (asked.length === 0) return;
      const told = await guards.heldFrom(
        environmentId,
        asked.map((key) => Buffer.from(key, 'hex')),
      );
      for (const [at, key] of asked.entries()) answers.set(key, told[at]!);
    };
    await ask(own.flatMap(({ heldBy, keys }) => heldBy ?? keys));
    const letGo = own.filter((fact) => findHolder(fact, answers) === null);
    await ask(letGo.flatMap(({ keys }) => keys));
    for (const fact of own) {
      fact.heldBy = findHolder(fact, answers);
      if (fact.heldBy === null) free.push(fact);
    }
  }
  return free;
}

/** The first key, of those that were asked for, whose person the fact waits for; null when it waits for none of them. */
function findHolder({ keys, receivedAt }: HeldFact, answers: Answers): string | null {
  return keys.find((key) => receivedAt > (answers.get(key) ?? Number.POSITIVE_INFINITY)) ?? null;
}
