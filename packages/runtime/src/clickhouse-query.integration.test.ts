import { testStores } from '@playline/testkit';
import { expect, it } from 'vitest';
import { askClickHouse, createQueryRows, readRows } from './clickhouse-query.ts';

const account = { ...testStores().clickhouse, database: 'default' };

it('answers of ClickHouse come uncompressed, because packing costs both sides several times the question', async () => {
  const sql = 'SELECT number FROM numbers(20000)';
  const answer = await askClickHouse(account, { body: sql, deadlineMs: 20_000 });
  expect(answer.headers.get('content-encoding')).toBeNull();
  expect((await answer.text()).trimEnd().split('\n')).toHaveLength(20_000);
  const rows = await readRows(createQueryRows(account)(sql));
  expect([rows.length, rows.at(-1)]).toEqual([20_000, ['19999']]);
});
