// Divides the rows of a cluster, or of a single server, among more shards.
import { COPIED_TABLES, SHARDED_TABLES } from '@playline/contracts';
import type { ClickHouseClient } from '@playline/stores/clickhouse';
import { applySql, createForNodes, dropForNodes, openClient, type SqlTarget } from './apply.ts';
import { allOf } from './cluster.ts';

interface Node {
  readonly target: SqlTarget;
  readonly client: ClickHouseClient;
  /** True for a node that already has rows. */
  isOld: boolean;
}

/** Exists from the first replaced partition to the last, because the copies are then the only complete rows. */
const MARK = 'resharding';
/** Copies of a message must remain, so that the numbers of rows can be compared. */
const COPY_SETTINGS = {
  optimize_on_insert: 0,
  max_partitions_per_insert_block: '10000',
  wait_end_of_query: 1,
  // Longer than for a writer: a node that is busy with the copy must not fail it.
  receive_timeout: 300,
  send_timeout: 300,
} as const;
const POLL_MS = 200;

/**
 * Divides all rows among the nodes, whose first ones are the present nodes in the same order. Writers must be stopped,
 * because blocks that they began are found by offset only. Readers get errors while partitions are replaced. After an
 * interruption, run it again.
 * @param targets nodes of the new cluster, the home first; ClickHouse must already know the cluster
 * @throws Error before anything is changed, or if rows were written during the copy
 */
export async function reshard(targets: readonly SqlTarget[], cluster: string, report: (line: string) => void) {
  const nodes: Node[] = [];
  try {
    for (const [index, target] of targets.entries()) {
      const ofNode = { ...target, node: { cluster, isHome: index === 0 } };
      nodes.push({ target: ofNode, client: openClient(target, 'default'), isOld: false });
    }
    for (const node of nodes) await check(node, cluster);
    const [home] = nodes as [Node, ...Node[]];
    const { database } = home.target;
    if (!(await exists(home, MARK))) {
      await addNodes(nodes, cluster, report);
      await copyRows(nodes, cluster, report);
      await run(home, `CREATE TABLE IF NOT EXISTS ${database}.${MARK} (cluster String) ENGINE = Log`);
    }
    for (const { target } of nodes) await dropForNodes(target);
    for (const node of nodes) for (const { name } of SHARDED_TABLES) await replacePartitions(node, name);
    for (const { target } of nodes) await createForNodes(target);
    await run(home, `DROP TABLE ${database}.${MARK} SYNC`);
    for (const node of nodes) await dropCopies(node);
    report(`rows are divided among ${nodes.length} shards of ${cluster}`);
  } finally {
    for (const { client } of nodes) await client.close();
  }
}

const run = (node: Node, query: string, settings = {}) => node.client.command({ query, clickhouse_settings: settings });

async function read<T>(node: Node, query: string): Promise<T[]> {
  return (await node.client.query({ query, format: 'JSONEachRow' })).json<T>();
}

async function exists(node: Node, table: string): Promise<boolean> {
  const [row] = await read<{ result: number }>(node, `EXISTS TABLE ${node.target.database}.${table}`);
  return row?.result === 1;
}

/** @throws Error if ClickHouse does not know the cluster, or knows another number of shards */
async function check(node: Node, cluster: string): Promise<void> {
  node.isOld = await exists(node, 'events');
  const [row] = await read<{ shards: string }>(
    node,
    `SELECT uniqExact(shard_num) AS shards FROM system.clusters WHERE cluster = '${cluster}'`,
  );
  if (Number(row?.shards) === 0)
    throw new Error(`${node.target.url}: has no cluster ${cluster}. Add it to remote_servers`);
}

/** Creates the tables of new nodes, with the rows that every node has. */
async function addNodes(nodes: readonly Node[], cluster: string, report: (line: string) => void): Promise<void> {
  if (nodes[0]?.isOld !== true)
    throw new Error(`${nodes[0]?.target.url}: has no tables. The first node must be the home`);
  for (const node of nodes.filter(({ isOld }) => !isOld)) {
    const { target } = node;
    await applySql(target);
    for (const table of COPIED_TABLES) {
      const columns = await read<{ name: string }>(
        node,
        `SELECT name FROM system.columns WHERE database = '${target.database}' AND table = '${table}'
           AND default_kind IN ('', 'DEFAULT') AND NOT startsWith(default_expression, 'now') ORDER BY position`,
      );
      const names = columns.map(({ name }) => name).join(', ');
      await run(
        node,
        `INSERT INTO ${target.database}.${table} (${names})
         SELECT ${names} FROM cluster('${cluster}_home', ${target.database}.${table})`,
        COPY_SETTINGS,
      );
    }
    report(`${target.url}: tables created`);
  }
}

/** Copies the rows of present nodes into `…_next` of all nodes. @throws Error if the rows and the copies differ */
async function copyRows(nodes: readonly Node[], cluster: string, report: (line: string) => void): Promise<void> {
  const old = nodes.filter(({ isOld }) => isOld);
  for (const node of nodes) {
    const { database } = node.target;
    await dropCopies(node);
    await run(node, `CREATE DATABASE IF NOT EXISTS ${allOf(database)} ENGINE = Atomic`);
    for (const { name, shardedBy } of SHARDED_TABLES) {
      // Also stops a writer that was forgotten.
      await run(node, `DROP TABLE IF EXISTS ${allOf(database)}.${name} SYNC`);
      await run(node, `CREATE TABLE ${database}.${name}_next AS ${database}.${name}`);
      await run(node, `SYSTEM STOP MERGES ${database}.${name}`);
      await run(node, `SYSTEM STOP MERGES ${database}.${name}_next`);
      await run(
        node,
        `CREATE TABLE ${allOf(database)}.${name}_next AS ${database}.${name}_next
         ENGINE = Distributed(${cluster}, ${database}, ${name}_next, ${shardedBy})`,
      );
    }
  }
  for (const node of old) await awaitInserts(node);
  for (const { name } of SHARDED_TABLES) {
    for (const node of old) {
      const { database } = node.target;
      await run(node, `INSERT INTO ${allOf(database)}.${name}_next SELECT * FROM ${database}.${name}`, COPY_SETTINGS);
    }
    const [before, after] = [await sumRows(old, name), await sumRows(nodes, `${name}_next`)];
    if (before !== after)
      throw new Error(
        `${name}: ${before} rows and their hash, but ${after} were copied. Stop all writers, and run again`,
      );
    report(`${name}: copied ${before.split(' ')[0]} rows`);
  }
}

async function awaitInserts(node: Node): Promise<void> {
  const query = "SELECT count() AS inserts FROM system.processes WHERE query_kind = 'Insert'";
  while (Number((await read<{ inserts: string }>(node, query))[0]?.inserts) > 0)
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
}

/** Returns the number of rows and the sum of the hashes of their sorting keys. */
async function sumRows(nodes: readonly Node[], table: string): Promise<string> {
  let [count, hash] = [0n, 0n];
  for (const node of nodes) {
    const { database } = node.target;
    const [key] = await read<{ sorting_key: string }>(
      node,
      `SELECT sorting_key FROM system.tables WHERE database = '${database}' AND name = '${table}'`,
    );
    const [sum] = await read<{ count: string; hash: string }>(
      node,
      `SELECT toString(count()) AS count, toString(sum(cityHash64(${key?.sorting_key}))) AS hash FROM ${database}.${table}`,
    );
    count += BigInt(sum?.count ?? 0);
    hash = BigInt.asUintN(64, hash + BigInt(sum?.hash ?? 0));
  }
  return `${count} ${hash}`;
}

/** Starts no materialized view, and empties a partition whose rows all moved away. Can be repeated. */
async function replacePartitions(node: Node, table: string): Promise<void> {
  const { database } = node.target;
  const partitions = await read<{ id: string }>(
    node,
    `SELECT DISTINCT partition_id AS id FROM system.parts
     WHERE database = '${database}' AND table IN ('${table}', '${table}_next') AND active`,
  );
  for (const { id } of partitions)
    await run(node, `ALTER TABLE ${database}.${table} REPLACE PARTITION ID '${id}' FROM ${database}.${table}_next`);
}

async function dropCopies(node: Node): Promise<void> {
  const { database } = node.target;
  for (const { name } of SHARDED_TABLES) {
    await run(node, `DROP TABLE IF EXISTS ${database}.${name}_next SYNC`);
    if (await hasDatabase(node, allOf(database)))
      await run(node, `DROP TABLE IF EXISTS ${allOf(database)}.${name}_next SYNC`);
    await run(node, `SYSTEM START MERGES ${database}.${name}`);
  }
}

async function hasDatabase(node: Node, name: string): Promise<boolean> {
  const [row] = await read<{ result: number }>(node, `EXISTS DATABASE ${name}`);
  return row?.result === 1;
}
