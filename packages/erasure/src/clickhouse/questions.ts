import type { KeptConsent, LinkedPair, NotedRows } from '../rows.ts';
import type { Connection } from './connection.ts';
import { type FoundRow, toFound } from './found-rows.ts';
import { toUuidText } from './predicates.ts';

const fromHex = (text: string) => Buffer.from(text, 'hex');

/** What was noted where the rows of a batch stood, before they were deleted. */
export async function readNoted(connection: Connection, batchId: Buffer): Promise<NotedRows> {
  const batch = `batch_id = '${toUuidText(batchId)}'`;
  const found = await connection.read<FoundRow & { table: string }>(
    `SELECT table_name AS table, column_name AS column, how, environment_id, lower(hex(identity_key)) AS key, count() AS rows
     FROM erasure_found WHERE ${batch} GROUP BY table, column, how, environment_id, key`,
  );
  const shared = await connection.read<{ table: string; environment_id: string; keys: string[]; rows: number }>(
    `SELECT table_name AS table, environment_id, keys, count() AS rows FROM (
       SELECT table_name, any(environment_id) AS environment_id, arraySort(groupArray(lower(hex(identity_key)))) AS keys
       FROM erasure_found WHERE ${batch} AND how = 'own' GROUP BY table_name, part, part_offset HAVING length(keys) > 1
     ) GROUP BY table, environment_id, keys`,
  );
  return {
    found: found.flatMap((row) => toFound(row.table, [row])),
    shared: shared.map(({ table, environment_id: environmentId, keys, rows }) => {
      return { table, environmentId, keys: keys.map(fromHex), rows };
    }),
  };
}

/** The table's sorting key begins with the identity, so this reads next to nothing. */
export async function findConsents(connection: Connection, batchId: Buffer): Promise<KeptConsent[]> {
  const rows = await connection.read<{ environment_id: string; key: string; partition: number; offset: number }>(
    `SELECT environment_id, lower(hex(identity_key)) AS key, kafka_partition AS partition, kafka_offset AS offset
     FROM consent_log WHERE (environment_id, identity_key) IN (
       SELECT environment_id, identity_key FROM erasure_targets WHERE batch_id = '${toUuidText(batchId)}')`,
  );
  return rows.map(({ environment_id: environmentId, key, ...place }) => {
    return { environmentId, key: fromHex(key), ...place };
  });
}

export async function findLinks(connection: Connection, batchId: Buffer): Promise<LinkedPair[]> {
  const targets = `erasure_targets WHERE batch_id = '${toUuidText(batchId)}'`;
  const isTarget = (column: string) =>
    `(environment_id, ${column}) IN (SELECT environment_id, identity_key FROM ${targets})`;
  const rows = await connection.read<{ a: string; b: string }>(
    `SELECT DISTINCT lower(hex(a_key)) AS a, lower(hex(b_key)) AS b FROM identity_links
     WHERE (${isTarget('a_key')} OR ${isTarget('b_key')}) AND outcome IN ('linked', 'unchanged')
       AND received_at <= (SELECT max(cutoff_at) FROM ${targets})`,
  );
  return rows.map(({ a, b }) => ({ a: fromHex(a), b: fromHex(b) }));
}
