import { type DatabaseTarget, runStatement, toDatabaseName } from './clickhouse-target.ts';
import { type Stores, tableTemplate, testStores } from './stores.ts';

/** A database with every table, under a name that no other test has. */
export interface OwnDatabase {
  readonly target: DatabaseTarget;
  /** Sends one statement about the database. @throws Error with the words of ClickHouse */
  query(sql: string): Promise<string>;
  /** Drops the database. */
  close(): Promise<void>;
}

/** Makes a database with every table, for a test that names it itself and drops it. */
export async function createTables(target: DatabaseTarget): Promise<void> {
  const template = tableTemplate();
  if (template !== null) return copyTables(template, target);
  const { applySql } = await import('@playline/infra/clickhouse');
  await applySql(target);
}

export async function openOwnDatabase(stores: Stores = testStores()): Promise<OwnDatabase> {
  const { url, user, password } = stores.clickhouse;
  const target = { url, user, password, database: toDatabaseName() };
  await createTables(target);
  const query = (sql: string) => runStatement(target, sql);
  return { target, query, close: async () => void (await query(`DROP DATABASE ${target.database} SYNC`)) };
}

/** An object of a database, and the statement that makes it as it is now. */
interface Made {
  readonly name: string;
  readonly statement: string;
}

/**
 * Creates a database with every table and view of the template, and with the rows that the SQL files insert. The result
 * equals that of the SQL files, for two thirds of the CPU: comments are already in the statements.
 */
async function copyTables(template: DatabaseTarget, target: DatabaseTarget): Promise<void> {
  const objects = await readObjects(template);
  await runStatement({ ...target, database: 'default' }, `CREATE DATABASE ${target.database} ENGINE = Atomic`);
  for (const layer of toLayers(objects, template.database))
    await Promise.all(
      layer.map(({ statement }) => runStatement(target, statement.replaceAll(template.database, target.database))),
    );
  await copyRows(template, target);
}

async function readObjects(template: DatabaseTarget): Promise<Made[]> {
  const lines = await runStatement(
    template,
    `SELECT name, create_table_query AS statement FROM system.tables
     WHERE database = currentDatabase() FORMAT JSONEachRow`,
  );
  return lines.split('\n').map((line) => JSON.parse(line) as Made);
}

/** Objects of one layer name only objects of the layers before. ClickHouse writes every name with its database. */
function toLayers(objects: readonly Made[], database: string): Made[][] {
  const names = new Set(objects.map(({ name }) => name));
  const needs = new Map(
    objects.map(({ name, statement }) => {
      const named = [...statement.matchAll(new RegExp(`${database}\\.(\\w+)`, 'g'))].map(([, of = '']) => of);
      return [name, new Set(named.filter((of) => of !== name && names.has(of)))];
    }),
  );
  const layers: Made[][] = [];
  for (let left = [...objects]; left.length > 0; ) {
    const isLeft = new Set(left.map(({ name }) => name));
    const layer = left.filter(({ name }) => ![...needs.get(name)!].some((of) => isLeft.has(of)));
    if (layer.length === 0) throw new Error(`these name each other: ${[...isLeft].join(', ')}`);
    layers.push(layer);
    left = left.filter((made) => !layer.includes(made));
  }
  return layers;
}

async function copyRows(template: DatabaseTarget, target: DatabaseTarget): Promise<void> {
  const names = await runStatement(
    template,
    'SELECT name FROM system.tables WHERE database = currentDatabase() AND total_rows > 0',
  );
  await Promise.all(
    names.split('\n').map(async (name) => {
      const rows = await runStatement(template, `SELECT * FROM ${name} FORMAT JSONEachRow`);
      await runStatement(target, `INSERT INTO ${name} FORMAT JSONEachRow\n${rows}`);
    }),
  );
}
