import { runStatement, tableTemplate } from '@playline/testkit';
import { expect, it } from 'vitest';

// ClickHouse does not store comments on dictionary columns, or the columns of parameterized views.
it('every column of every table and view has a comment', async () => {
  const uncommented = await runStatement(
    tableTemplate()!,
    `SELECT concat(table, '.', name) FROM system.columns
     WHERE database = currentDatabase() AND comment = ''
       AND table NOT IN (SELECT name FROM system.tables WHERE database = currentDatabase() AND engine = 'Dictionary')`,
  );
  expect(uncommented).toBe('');
});
