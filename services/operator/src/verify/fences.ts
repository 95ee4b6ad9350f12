import type { IsFenced } from '@playline/events';
import { type QueryRows, readRows } from '../clickhouse-query.ts';

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
  const cutoffs = new Map<string, number>();
  const tables = await readRows(query('EXISTS TABLE erasure_fences'));
  if (Number(tables[0]?.[0]) === 0) return cutoffs;
  const rows = query(`
    SELECT environment_id, lower(hex(identity_key)), toUnixTimestamp64Milli(max(cutoff_at))
    FROM erasure_fences GROUP BY environment_id, identity_key`);
  for await (const [environmentId, key, cutoff] of rows)
    cutoffs.set(keyOf(String(environmentId), String(key)), Number(cutoff));
  return cutoffs;
}
