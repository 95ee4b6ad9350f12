import { type DatabaseTarget, runStatement, toDatabaseName } from './clickhouse-target.ts';
import { type Stores, tableTemplate, testStores } from './stores.ts';
import { copyTables } from './table-copy.ts';

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
