import type { IsFenced } from '@playline/events';
import type { QueryRows } from '../clickhouse-query.ts';
import { readFences } from '../rebuild/tables.ts';

/** Latest cut-off of an identity, by environment and hexadecimal key. */
export type Cutoffs = ReadonlyMap<string, number>;

const keyOf = (environmentId: string, key: string) => `${environmentId} ${key}`;

/** An erased identity keeps nothing that happened or was received up to its cut-off. */
export function createIsFenced(cutoffs: Cutoffs): IsFenced {
  return ({ environmentId, key, eventTimeMs, receivedAtMs }) => {
    const cutoffMs = cutoffs.get(keyOf(environmentId, key.toString('hex')));
    return cutoffMs !== undefined && Math.min(eventTimeMs, receivedAtMs) <= cutoffMs;
  };
}

/** Fences as `erasure_fences` has them; none where a deployment has no such table. */
export async function readCutoffs(query: QueryRows): Promise<Cutoffs> {
  const fences = await readFences(query);
  return new Map(
    fences.map(({ environmentId, key, cutoffMs }) => [keyOf(environmentId, key.toString('hex')), cutoffMs]),
  );
}
