import { runStatement, tableTemplate } from '@playline/testkit';
import { expect, it } from 'vitest';

// ClickHouse keeps no comments on the columns of a dictionary, and no columns of a view with parameters.
it('every column of every table and view has a comment', async () => {
  const silent = await runStatement(
    tableTemplate()!,
    `SELECT concat(table, '.', name) FROM system.columns
     WHERE database = currentDatabase() AND comment = ''
       AND table NOT IN (SELECT name FROM system.tables WHERE database = currentDatabase() AND engine = 'Dictionary')`,
  );
  expect(silent).toBe('');
});
