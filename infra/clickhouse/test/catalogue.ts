import { type DatabaseTarget, runStatement } from '@playline/testkit';

/**
 * Returns the current CREATE statement of each object in a database, and the rows inserted by the SQL files. The
 * database name is removed, and settings are sorted, because `ALTER TABLE … MODIFY SETTING` appends them.
 */
export async function readCatalogue(target: DatabaseTarget): Promise<Record<string, string>> {
  const response = await runStatement(
    target,
    `SELECT name, formatQuery(create_table_query) AS statement FROM system.tables
     WHERE database = currentDatabase() ORDER BY name FORMAT JSONEachRow`,
  );
  const objects = response.split('\n').map((line) => JSON.parse(line) as { name: string; statement: string });
  const catalogue = Object.fromEntries(
    objects.map(({ name, statement }) => [name, toNormalForm(statement, target.database)]),
  );
  if ('analyst_grants' in catalogue)
    catalogue['rows of analyst_grants'] = await runStatement(
      target,
      'SELECT * EXCEPT changed_at FROM analyst_grants FINAL',
    );
  return catalogue;
}

function toNormalForm(statement: string, database: string): string {
  return statement
    .replaceAll(`${database}.`, '')
    .replaceAll(
      /^SETTINGS .*$/gm,
      (line) => `SETTINGS ${line.slice('SETTINGS '.length).split(', ').sort().join(', ')}`,
    );
}
