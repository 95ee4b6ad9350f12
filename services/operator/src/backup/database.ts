/** Reads the parts of a database that are not rows, and creates them again. */
import { PREFIX, toAddStatement } from '../columns/property-column.ts';
import { readStoredColumns, refreshViews, type SqlClient } from '../columns/tables.ts';
import type { Manifest } from './manifest.ts';

export async function readSchemaChecksums(client: SqlClient): Promise<Record<string, string>> {
  const rows = await client.read('SELECT name, checksum FROM applied_sql_files FINAL ORDER BY name');
  return Object.fromEntries(rows.map(([name, checksum]) => [String(name), String(checksum)]));
}

/** @throws Error if the database was created by another release */
export async function assertSameSchema(client: SqlClient, { schema }: Manifest): Promise<void> {
  const current = await readSchemaChecksums(client).catch(() => ({}) as Record<string, string>);
  const checksums = new Set(Object.values(current));
  const missing = Object.entries(schema).filter(([, checksum]) => !checksums.has(checksum));
  if (missing.length === 0 && Object.keys(current).length > 0) return;
  const names = missing.map(([name]) => name).join(', ');
  throw new Error(
    `the database does not have the tables of the backup (${names}): create them with the release that made the backup, ` +
      'restore, and then upgrade',
  );
}

/** Reads the columns that `npm run columns` added. */
export async function readPropertyColumns(client: SqlClient): Promise<Manifest['propertyColumns']> {
  const stored = await readStoredColumns(client);
  return stored.flatMap(({ name, column }) =>
    column === null ? [] : [{ name: PREFIX + name, statement: toAddStatement(column) }],
  );
}

export async function addPropertyColumns(client: SqlClient, { propertyColumns }: Manifest): Promise<void> {
  const existing = new Set((await readStoredColumns(client)).map(({ name }) => PREFIX + name));
  const missing = propertyColumns.filter(({ name }) => !existing.has(name));
  for (const { statement } of missing) await client.run(statement);
  if (missing.length > 0) await refreshViews(client);
}

/** Reads the accounts that were created with SQL. Their passwords are not copied. */
export async function readSqlAccounts(client: SqlClient): Promise<string[]> {
  const rows = await client.read("SELECT name FROM system.users WHERE storage != 'users_xml' ORDER BY name");
  return rows.map(([name]) => String(name));
}
