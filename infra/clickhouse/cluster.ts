// The objects that a node of a ClickHouse cluster has in addition to those of a single server.
import { TABLE_DISTRIBUTIONS } from '@playline/contracts';
import type { ClickHouseClient } from '@playline/stores/clickhouse';

/**
 * A node of a cluster. Each node has all tables in the database of the deployment. Database `<name>_rows` contains the
 * views that one shard computes from its rows, and `<name>_all` the tables over all shards, which services write.
 * The home also has the views for people under their usual names.
 */
export interface ClusterNode {
  /** The name of the clusters in the configuration of ClickHouse (infra/local/clickhouse.ts). */
  readonly cluster: string;
  /** True for the first node, which contains the tables without shards. */
  readonly isHome: boolean;
}

export const allOf = (database: string): string => `${database}_all`;
export const rowsOf = (database: string): string => `${database}_rows`;

const isSharded = (table: string): boolean => typeof TABLE_DISTRIBUTIONS[table] === 'object';

/** Replaces the names of databases: `{{rows}}` for views of one shard, `{{all}}` for the rows of all shards. */
export function replaceDatabases(statement: string, database: string, node: ClusterNode | undefined): string {
  if (node === undefined) return statement.replaceAll(/\{\{(all|rows)\}\}/g, database);
  return statement
    .replaceAll('{{rows}}', rowsOf(database))
    .replaceAll('TO {{all}}.', `TO ${allOf(database)}.`)
    .replaceAll(/\{\{all\}\}\.(\w+)/g, (_, name: string) =>
      isSharded(name) ? `${allOf(database)}.rows_of_${name}` : `${database}.${name}`,
    );
}

const VIEW = /^CREATE VIEW IF NOT EXISTS (\S+)[\s\S]*?\bSQL SECURITY (DEFINER|INVOKER)\b/;
const TABLE = /^CREATE TABLE IF NOT EXISTS (\w+)/;
const ALTERED = /^ALTER TABLE (\S+) \{\{comments of/;
const ROWS = '{{rows}}.';
const COMMENT = /\bCOMMENT '(?:''|[^'])*'$/;

/** Creates a filter for statements of the schema: only the home has the views for people, except views of rows. */
export function createStatementFilter(node: ClusterNode | undefined): (statement: string) => boolean {
  const skipped = new Set<string>();
  return (statement) => {
    if (node === undefined || node.isHome) return true;
    const [, view = '', security] = VIEW.exec(statement) ?? [];
    if (security === 'DEFINER' && !view.startsWith(ROWS)) skipped.add(view);
    return !skipped.has(view) && !skipped.has(ALTERED.exec(statement)?.[1] ?? '');
  };
}

const CHANGED = /^(?:CREATE|DROP|ALTER) .*?\b(?:TABLE|VIEW) (?:IF (?:NOT )?EXISTS )?(\S+)/;

/**
 * Creates a filter for the statements of migrations in a cluster: skips those that change what is created again afterwards
 * from the schema, which includes the existing views and tables with the given names.
 */
export function createMigrationFilter(names: readonly string[]): (statement: string) => boolean {
  return (statement) => {
    const [, name] = CHANGED.exec(statement) ?? [];
    if (name === undefined) return true;
    return !names.includes(name) && !/\{\{(all|rows|comments of)\b|\bDEFINER = views\b/.test(statement);
  };
}

/** Returns the statements to execute after a statement of the schema, in the database of the deployment. */
export async function distribute(
  client: ClickHouseClient,
  statement: string,
  { database, node }: { readonly database: string; readonly node: ClusterNode },
): Promise<string[]> {
  const { cluster, isHome } = node;
  const view = VIEW.exec(statement)?.[1] ?? '';
  if (view.startsWith(ROWS)) {
    const name = view.slice(ROWS.length);
    const comment = COMMENT.exec(statement)?.[0] ?? '';
    const source = `${rowsOf(database)}.${name}`;
    return isHome ? [`CREATE TABLE IF NOT EXISTS ${name} AS ${source} ${distributed(cluster, source)} ${comment}`] : [];
  }
  const altered = ALTERED.exec(statement)?.[1] ?? '';
  if (altered.startsWith(ROWS) && isHome) return [statement.replace(altered, altered.slice(ROWS.length))];
  const table = TABLE.exec(statement)?.[1] ?? '';
  const distribution = TABLE_DISTRIBUTIONS[table];
  if (table === '' || distribution === 'local') return [];
  const over = `${allOf(database)}.${table}`;
  const local = `${database}.${table}`;
  if (distribution === undefined)
    return [`CREATE TABLE IF NOT EXISTS ${over} AS ${local} ${distributed(`${cluster}_home`, local)}`];
  if (distribution === 'everywhere') {
    const columns = await readSentColumns(client, table);
    return [`CREATE TABLE IF NOT EXISTS ${over} (${columns}) ${distributed(`${cluster}_everywhere`, local)}`];
  }
  const rows = `${rowsOf(database)}.${table}`;
  const computed = await readColumns(client, table, "default_kind = 'MATERIALIZED'");
  return [
    `CREATE TABLE IF NOT EXISTS ${over} AS ${local} ${distributed(cluster, local, distribution.shardedBy)}`,
    `CREATE VIEW IF NOT EXISTS ${rows} DEFINER = views SQL SECURITY DEFINER AS
     SELECT ${['*', ...computed.map(({ name }) => name)].join(', ')} FROM ${local}`,
    `CREATE TABLE IF NOT EXISTS ${allOf(database)}.rows_of_${table} AS ${rows} ${distributed(cluster, rows)}`,
  ];
}

function distributed(cluster: string, source: string, ...key: readonly string[]): string {
  const [database, table] = source.split('.');
  return `ENGINE = Distributed(${[cluster, database, table, ...key].join(', ')})`;
}

/** Columns that every node computes by itself, such as the time of storage, are not sent. */
async function readSentColumns(client: ClickHouseClient, table: string): Promise<string> {
  const columns = await readColumns(client, table, "NOT startsWith(default_expression, 'now')");
  return columns.map(({ name, type }) => `${name} ${type}`).join(', ');
}

async function readColumns(client: ClickHouseClient, table: string, where: string) {
  const query = `SELECT name, type FROM system.columns
    WHERE database = currentDatabase() AND table = {table: String} AND ${where} ORDER BY position`;
  const result = await client.query({ query, query_params: { table }, format: 'JSONEachRow' });
  return result.json<{ name: string; type: string }>();
}
