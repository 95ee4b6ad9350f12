import { runStatement, tableTemplate } from '@playline/testkit';
import { expect, it } from 'vitest';

it('every column of every table has a comment', async () => {
  const template = tableTemplate()!;
  const silent = await runStatement(
    template,
    `SELECT concat(table, '.', name) FROM system.columns
     WHERE database = currentDatabase() AND comment = '' AND table NOT IN (
       SELECT name FROM system.tables
       WHERE database = currentDatabase() AND engine IN ('View', 'MaterializedView', 'Dictionary')
     )`,
  );
  expect(silent.trim()).toBe('');
});
