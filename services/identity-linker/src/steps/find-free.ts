import type { ErasureGuards } from '@playline/people';

/** A fact that waits while an erasure holds somebody whom it touches. */
export interface HeldFact {
  readonly environmentId: string;
  /** Epoch milliseconds. */
  readonly receivedAt: number;
  /** Identity keys of all its steps, hexadecimal. */
  readonly keys: readonly string[];
  /** The key whose person was held at the last check; null before the first check. */
  heldBy: string | null;
}

/** For each checked key, the time after which links of the identity wait; null when there is no hold on it. */
type Answers = Map<string, number | null>;

/**
 * Finds the facts that no hold delays any more, by the rule that the graph uses. For a fact that was held, only the key
 * whose person was held is checked; usually all facts of a person share it. All keys are checked when the fact is new,
 * or when that key is free.
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

/** The first checked key whose person the fact waits for; null when it waits for none. */
function findHolder({ keys, receivedAt }: HeldFact, answers: Answers): string | null {
  return keys.find((key) => receivedAt > (answers.get(key) ?? Number.POSITIVE_INFINITY)) ?? null;
}
