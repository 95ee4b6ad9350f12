import { setTimeout as delay } from 'node:timers/promises';
import { COPIED_TABLES, SHARDED_TABLES } from '@playline/contracts';
import { type QueryRows, readRows } from '@playline/stores';

/** A row may be on one node before it is on the others. */
const CHECKS = 5;
const CHECK_INTERVAL_MS = 500;
/** Times that each node sets itself. */
const TIMES: Readonly<Record<string, string>> = { identity_overrides: 'stored_at', analyst_grants: 'changed_at' };

/** Batches that erasers process. A node that was killed may keep a batch until the maintenance of the eraser drops it. */
const TEMPORARY = 'erasure_targets';

/** Finds rows on a wrong shard, and tables of which nodes have different copies. @returns a sentence for each */
export async function findNodeDifferences(
  nodes: readonly QueryRows[],
  onProgress: (line: string) => void,
): Promise<string[]> {
  if (nodes.length === 1) return [];
  const found: string[] = [];
  for (const { name, shardedBy } of SHARDED_TABLES)
    for (const [index, query] of nodes.entries()) {
      onProgress(`comparing the shards of ${name}`);
      const sql = `SELECT count() FROM ${name} WHERE ${shardedBy} % ${nodes.length} != ${index}`;
      const [[rows] = [0]] = await readRows(query(sql));
      if (Number(rows) > 0) found.push(`${name}: ${rows} rows on node ${index + 1} belong to another shard`);
    }
  for (const name of COPIED_TABLES.filter((table) => table !== TEMPORARY))
    if (!(await becomeEqual(nodes, name))) found.push(`${name}: the nodes have different copies`);
  return found;
}

async function becomeEqual(nodes: readonly QueryRows[], table: string): Promise<boolean> {
  for (let check = 1; check < CHECKS; check++) {
    if (await areEqual(nodes, table)) return true;
    await delay(CHECK_INTERVAL_MS);
  }
  return areEqual(nodes, table);
}

async function areEqual(nodes: readonly QueryRows[], table: string): Promise<boolean> {
  const time = TIMES[table];
  const columns = time === undefined ? '*' : `* EXCEPT ${time}`;
  const sql = `SELECT count(), sum(cityHash64(*)) FROM (SELECT ${columns} FROM ${table} FINAL)`;
  const sums = await Promise.all(nodes.map(async (query) => JSON.stringify(await readRows(query(sql)))));
  return new Set(sums).size === 1;
}
