// Divides the rows of a cluster, or of a single server, among more shards.
import { COPIED_TABLES, SHARDED_TABLES } from '@playline/contracts';
import { awaitInserts, IS_INSERT, selectCluster } from '@playline/stores';
import type { ClickHouseClient } from '@playline/stores/clickhouse';
import { applySql, createForNodes, dropForNodes, openClient, type SqlTarget } from './apply.ts';
import { allOf } from './cluster.ts';

interface Node {
  readonly target: SqlTarget;
  readonly client: ClickHouseClient;
}

type Report = (line: string) => void | Promise<void>;

/**
 * A table of the home while the command runs. Its comment names the previous cluster, or nothing for a single server. From
 * the first replaced partition to the last, the comment names the new cluster, because the copies are then the only
 * complete rows.
 */
const PROGRESS = 'resharding';
const [FROM, TO] = ['from ', 'to '];
/** Refuses inserts. ClickHouse quotes its name in the error. */
const CONSTRAINT = '`npm run shards -- reshard has not completed`';
const COPY_SETTINGS = {
  // Copies of a message must remain, so that the numbers of rows can be compared.
  optimize_on_insert: 0,
  insert_deduplicate: 0,
  max_partitions_per_insert_block: '10000',
  wait_end_of_query: 1,
  // Longer than for a writer: a node that is busy with the copy must not fail it.
  receive_timeout: 300,
  send_timeout: 300,
} as const;
/** Copies consist of many parts, because merges are stopped. By default, inserts are refused above 3,000 parts. */
const COPY_LIMITS = ['parts_to_delay_insert', 'parts_to_throw_insert', 'max_parts_in_total']
  .map((setting) => `${setting} = 10000000`)
  .join();
/** By default, a table above 50 GB cannot be dropped. */
const DROP_SETTINGS = { max_table_size_to_drop: '0' };
/** Parts that are not merged need more space. */
const COPY_MARGIN = 1.2;

/**
 * Divides all rows among the nodes, whose first ones are the present nodes in the same order. Event writers and the eraser
 * must be stopped, because blocks that they began are found by offset only. Readers get errors while partitions are
 * replaced. After an interruption, run it again.
 * @param targets nodes of the new cluster, the home first; ClickHouse must already know the cluster
 * @throws Error before the present nodes are changed, or after they were restored; after `switching` was reported, the
 * rows are only partly replaced, and the command must be repeated
 */
export async function reshard(targets: readonly SqlTarget[], cluster: string, report: Report): Promise<void> {
  const nodes = targets.map((target, index): Node => {
    const ofNode = { ...target, node: { cluster, isHome: index === 0 } };
    return { target: ofNode, client: openClient(target, 'default') };
  });
  try {
    const [home] = nodes as [Node, ...Node[]];
    await assertShards(nodes, cluster);
    const progress = await readProgress(home);
    if (progress.startsWith(TO)) {
      if (progress !== TO + cluster)
        throw new Error(
          `The rows are only partly replaced. Run the command again for cluster ${progress.slice(TO.length)}`,
        );
      await separate(nodes, cluster);
    } else await prepare(nodes, { cluster, previous: progress.slice(FROM.length), report });
    for (const node of nodes) {
      for (const { name } of SHARDED_TABLES) await replacePartitions(node, name);
      await recountDays(node);
    }
    for (const node of nodes) await dropCopies(node);
    // First, because a table over all nodes copies the constraints of the sharded table.
    for (const node of nodes) await acceptInserts(node, SHARDED_NAMES);
    for (const { target } of nodes) await createForNodes(target);
    await acceptInserts(home, COPIED_TABLES);
    await run(home, `DROP TABLE ${home.target.database}.${PROGRESS} SYNC`);
    await report(`rows are divided among ${nodes.length} shards of ${cluster}`);
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

const ID = "concat(hostName(), ':', toString(tcpPort()), ' ', toString(serverUUID()))";

/** @throws Error unless the clusters of all nodes consist of exactly these nodes, in this order */
async function assertShards(nodes: readonly Node[], cluster: string): Promise<void> {
  const ids = await Promise.all(
    nodes.map(async (node) => (await read<{ id: string }>(node, `SELECT ${ID} AS id`))[0]!.id),
  );
  for (const node of nodes) {
    await assertNodes(node, cluster, ids);
    await assertNodes(node, `${cluster}_everywhere`, ids);
    await assertNodes(node, `${cluster}_home`, ids.slice(0, 1));
  }
}

async function assertNodes(node: Node, cluster: string, ids: readonly string[]): Promise<void> {
  const query = `SELECT ${ID} AS id FROM clusterAllReplicas('${cluster}', system.one) ORDER BY _shard_num`;
  const found = await read<{ id: string }>(node, query).catch((fault: unknown) => {
    throw new Error(
      `${node.target.url}: cluster ${cluster}: ${fault instanceof Error ? fault.message : String(fault)}`,
    );
  });
  if (found.map(({ id }) => id).join() !== ids.join())
    throw new Error(
      `${node.target.url}: cluster ${cluster} in remote_servers has the nodes ${found.map(({ id }) => id).join(', ')}. ` +
        `Expected, in the order of CLICKHOUSE_SHARD_URLS: ${ids.join(', ')}`,
    );
}

/** Returns the comment of the table. Without an unfinished run, the cluster is the one of the present tables. */
async function readProgress(home: Node): Promise<string> {
  const { database, url } = home.target;
  if (!(await exists(home, 'events'))) throw new Error(`${url}: has no tables. The first node must be the home`);
  const query = `SELECT comment FROM system.tables WHERE database = '${database}' AND name = '${PROGRESS}'`;
  const [table] = await read<{ comment: string }>(home, query);
  if (table !== undefined) return table.comment;
  const [row] = await read<{ cluster: string }>(home, selectCluster(database));
  return FROM + (row?.cluster ?? '');
}

interface Change {
  readonly cluster: string;
  /** Empty for a single server. */
  readonly previous: string;
  readonly report: Report;
}

/** Copies all rows. @throws Error after the present nodes were restored */
async function prepare(nodes: readonly Node[], change: Change): Promise<void> {
  const { cluster, previous, report } = change;
  const [home] = nodes as [Node, ...Node[]];
  const { database } = home.target;
  const old = await findPresent(nodes, previous);
  const added = nodes.slice(old.length);
  await assertAccounts(home, added);
  for (const node of added) await addNode(node, report);
  for (const node of nodes) {
    await dropCopies(node);
    await acceptInserts(node, [...SHARDED_NAMES, ...COPIED_TABLES]);
  }
  await assertCopyable(old, added);
  await run(
    home,
    `CREATE TABLE IF NOT EXISTS ${database}.${PROGRESS} (cluster String) ENGINE = MergeTree ORDER BY () COMMENT '${FROM}${previous}'`,
  );
  try {
    await copyRows(old, { nodes, ...change });
    await separate(nodes, cluster);
    await report(`switching to ${cluster}: if the command fails from here on, run it again`);
    await run(home, `ALTER TABLE ${database}.${PROGRESS} MODIFY COMMENT '${TO}${cluster}'`);
  } catch (fault) {
    await restore(old, change).then(
      () => report('the previous tables were restored'),
      (second: unknown) => report(`the previous tables were not restored, run the command again: ${second}`),
    );
    throw fault;
  }
}

/** Returns the nodes of the previous cluster. @throws Error unless they are the first nodes in the same order */
async function findPresent(nodes: readonly Node[], previous: string): Promise<readonly Node[]> {
  if (previous === '') return nodes.slice(0, 1);
  const query = `SELECT count() AS shards FROM system.clusters WHERE cluster = '${previous}'`;
  const [row] = await read<{ shards: string }>(nodes[0]!, query);
  const present = nodes.slice(0, Math.max(1, Number(row?.shards)));
  await assertShards(present, previous);
  return present;
}

/** @throws Error that names the accounts created with SQL that a new node lacks, because their queries would fail there */
async function assertAccounts(home: Node, added: readonly Node[]): Promise<void> {
  const select = "SELECT name FROM system.users WHERE startsWith(name, 'analyst_')";
  const created = await read<{ name: string }>(home, `${select} AND storage != 'users_xml' ORDER BY name`);
  for (const node of added) {
    const known = new Set((await read<{ name: string }>(node, select)).map(({ name }) => name));
    const missing = created.map(({ name }) => name).filter((name) => !known.has(name));
    if (missing.length === 0) continue;
    throw new Error(
      `${node.target.url}: accounts created with SQL are missing: ${missing.join(', ')}. Stop this server, copy the folder ` +
        `of local_directory (/var/lib/clickhouse/access) from ${home.target.url}, and start it. Or drop the accounts`,
    );
  }
}

/** Creates the tables of a new node. Their rows are copied later, because the rows of present nodes may still change. */
async function addNode(node: Node, report: Report): Promise<void> {
  const { target } = node;
  const select = `SELECT name FROM ${target.database}.applied_sql_files WHERE startsWith(name, 'schema/') LIMIT 1`;
  const isCreated = (await exists(node, 'applied_sql_files')) && (await read(node, select)).length > 0;
  if (!isCreated) await applySql(target);
  await report(`${target.url}: tables created`);
}

/** @throws Error if the copy would fail, or would lose rows of a new node */
async function assertCopyable(old: readonly Node[], added: readonly Node[]): Promise<void> {
  const [home] = old as [Node, ...Node[]];
  const nodes = [...old, ...added];
  const columns = await readColumns(home);
  for (const node of nodes) {
    const others = await readColumns(node);
    const different = [
      ...columns.filter((each) => !others.includes(each)),
      ...others.filter((each) => !columns.includes(each)),
    ];
    if (different.length > 0)
      throw new Error(
        `${node.target.url}: has other columns than the home: ${different.join(', ')}. Columns of npm run columns must be ` +
          'dropped first; migrations must be applied to all nodes',
      );
  }
  let bytes = 0;
  for (const node of old) bytes += (await readSize(node)).bytes;
  const needed = Math.ceil((bytes / nodes.length) * COPY_MARGIN);
  for (const node of nodes) {
    const { rows, free } = await readSize(node);
    if (added.includes(node) && rows > 0) throw new Error(`${node.target.url}: has rows. Add only empty nodes`);
    if (free < needed)
      throw new Error(`${node.target.url}: has ${free} bytes of free disk space, but the copy needs ${needed}`);
  }
}

const names = (tables: readonly string[]) => tables.map((name) => `'${name}'`).join(', ');
const SHARDED_NAMES = SHARDED_TABLES.map(({ name }) => name);
const SHARDED = names(SHARDED_NAMES);

async function readColumns(node: Node): Promise<string[]> {
  const rows = await read<{ column: string }>(
    node,
    `SELECT concat(table, '.', name, ' ', type, ' ', default_kind) AS column FROM system.columns
     WHERE database = '${node.target.database}' AND table IN (${SHARDED}, ${names(COPIED_TABLES)}) ORDER BY table, position`,
  );
  return rows.map(({ column }) => column);
}

/** Reads the rows and bytes of the sharded tables, and the free bytes of their disks. */
async function readSize(node: Node): Promise<{ rows: number; bytes: number; free: number }> {
  const { database } = node.target;
  const [row] = await read<Record<'rows' | 'bytes' | 'free', string>>(
    node,
    `SELECT sum(rows) AS rows, sum(bytes_on_disk) AS bytes, (SELECT sum(free_space) FROM system.disks WHERE name IN (
       SELECT arrayJoin(disks) FROM system.storage_policies WHERE policy_name = (
         SELECT storage_policy FROM system.tables WHERE database = '${database}' AND name = 'events'))) AS free
     FROM system.parts WHERE database = '${database}' AND table IN (${SHARDED}) AND active`,
  );
  return { rows: Number(row?.rows), bytes: Number(row?.bytes), free: Number(row?.free) };
}

/** Copies the rows of present nodes into `…_next` of all nodes. @throws Error if the rows and the copies differ */
async function copyRows(old: readonly Node[], { nodes, cluster, report }: Change & { nodes: readonly Node[] }) {
  for (const node of nodes) {
    const { database } = node.target;
    await run(node, `CREATE DATABASE IF NOT EXISTS ${allOf(database)} ENGINE = Atomic`);
    for (const { name, shardedBy } of SHARDED_TABLES) {
      // Also stops a writer that was forgotten.
      await run(node, `DROP TABLE IF EXISTS ${allOf(database)}.${name} SYNC`);
      await run(node, `CREATE TABLE ${database}.${name}_next AS ${database}.${name}`);
      await run(node, `ALTER TABLE ${database}.${name}_next MODIFY SETTING ${COPY_LIMITS}`);
      await run(node, `SYSTEM STOP MERGES ${database}.${name}`);
      await run(node, `SYSTEM STOP MERGES ${database}.${name}_next`);
      await run(
        node,
        `CREATE TABLE ${allOf(database)}.${name}_next AS ${database}.${name}_next
         ENGINE = Distributed(${cluster}, ${database}, ${name}_next, ${shardedBy})`,
      );
    }
  }
  // A writer with the settings of a single server inserts into the tables themselves. Events are first, because their inserts
  // also write to the other tables.
  for (const name of SHARDED_NAMES) await refuseInserts(old, [name]);
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
    await report(`${name}: copied ${before.split(' ')[0]} rows`);
  }
}

/** Makes inserts fail until `acceptInserts`, and waits for those that are running. */
async function refuseInserts(nodes: readonly Node[], tables: readonly string[]): Promise<void> {
  for (const node of nodes)
    for (const table of tables)
      await run(
        node,
        `ALTER TABLE ${node.target.database}.${table} ADD CONSTRAINT IF NOT EXISTS ${CONSTRAINT} CHECK false`,
      );
  for (const { target } of nodes) await awaitInsertsOf(target);
}

async function acceptInserts(node: Node, tables: readonly string[]): Promise<void> {
  for (const table of tables)
    await run(node, `ALTER TABLE ${node.target.database}.${table} DROP CONSTRAINT IF EXISTS ${CONSTRAINT}`);
}

async function awaitInsertsOf(target: SqlTarget): Promise<void> {
  const client = openClient(target, target.database);
  try {
    await awaitInserts(async () => {
      const query = `SELECT query_id AS id FROM system.processes WHERE ${IS_INSERT}`;
      const rows = await (await client.query({ query, format: 'JSONEachRow' })).json<{ id: string }>();
      return rows.map(({ id }) => id);
    });
  } finally {
    await client.close();
  }
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

/** Drops the tables over all nodes, so that no rows are written, and then gives all nodes the rows that each has. */
async function separate(nodes: readonly Node[], cluster: string): Promise<void> {
  for (const { target } of nodes) await dropForNodes(target);
  // Writes to the dropped tables.
  for (const node of nodes)
    await run(node, `DROP TABLE IF EXISTS ${node.target.database}.environment_settings_of_projects SYNC`);
  // Commands with the settings of a single server would change grants on the home only.
  await refuseInserts(nodes.slice(0, 1), COPIED_TABLES);
  await copyTables(nodes, cluster);
}

/** Replaces the rows that every node has by the rows of the home. */
async function copyTables(nodes: readonly Node[], cluster: string): Promise<void> {
  for (const node of nodes.slice(1)) {
    const { database } = node.target;
    for (const table of COPIED_TABLES) {
      await run(node, `TRUNCATE TABLE ${database}.${table} SYNC`, DROP_SETTINGS);
      const source = `cluster('${cluster}_home', ${database}.${table})`;
      await run(node, `INSERT INTO ${database}.${table} SELECT * FROM ${source}`, COPY_SETTINGS);
    }
    // The dictionary caches identity_overrides in memory.
    await run(node, `SYSTEM RELOAD DICTIONARY ${database}.identity_persons`);
  }
}

/** Makes the present nodes usable as before. The home is last, because services connect to it. */
async function restore(old: readonly Node[], { cluster, previous }: Change): Promise<void> {
  const [home] = old as [Node, ...Node[]];
  for (const node of old) {
    await dropCopies(node);
    await acceptInserts(node, SHARDED_NAMES);
  }
  const [row] = await read<{ cluster: string }>(home, selectCluster(home.target.database));
  // The tables over all nodes were dropped, and a node may have been emptied since.
  if (row === undefined) await copyTables(old, cluster);
  for (const { target } of old.toReversed()) {
    const { node, ...single } = target;
    await createForNodes(
      previous === '' ? single : { ...single, node: { cluster: previous, isHome: target === home.target } },
    );
  }
  await acceptInserts(home, COPIED_TABLES);
  await run(home, `DROP TABLE ${home.target.database}.${PROGRESS} SYNC`);
}

/** Starts no materialized view, and empties a partition whose rows all moved away. Can be repeated until `dropCopies`. */
async function replacePartitions(node: Node, table: string): Promise<void> {
  if (!(await exists(node, `${table}_next`))) return;
  const { database } = node.target;
  const partitions = await read<{ id: string }>(
    node,
    `SELECT DISTINCT partition_id AS id FROM system.parts
     WHERE database = '${database}' AND table IN ('${table}', '${table}_next') AND active`,
  );
  for (const { id } of partitions)
    await run(node, `ALTER TABLE ${database}.${table} REPLACE PARTITION ID '${id}' FROM ${database}.${table}_next`);
}

/** Replaced partitions start no materialized view, so the numbers of events per day are counted again. */
async function recountDays(node: Node): Promise<void> {
  const { database } = node.target;
  await run(node, `TRUNCATE TABLE ${database}.event_days SYNC`);
  await run(node, `TRUNCATE TABLE ${database}.counted_days SYNC`);
  await run(
    node,
    `INSERT INTO ${database}.counted_days (environment_id, day, stored_at)
     SELECT DISTINCT environment_id, toDate(event_time), now64(3, 'UTC') FROM ${database}.events`,
  );
}

async function dropCopies(node: Node): Promise<void> {
  const { database } = node.target;
  for (const { name } of SHARDED_TABLES) {
    await run(node, `DROP TABLE IF EXISTS ${database}.${name}_next SYNC`, DROP_SETTINGS);
    if (await hasDatabase(node, allOf(database)))
      await run(node, `DROP TABLE IF EXISTS ${allOf(database)}.${name}_next SYNC`);
    await run(node, `SYSTEM START MERGES ${database}.${name}`);
  }
}

async function hasDatabase(node: Node, name: string): Promise<boolean> {
  const [row] = await read<{ result: number }>(node, `EXISTS DATABASE ${name}`);
  return row?.result === 1;
}
