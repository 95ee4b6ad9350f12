import { testStores } from '@playline/testkit';
import { expect, it } from 'vitest';
import { createQueryRows, readRows, sendStatement } from './clickhouse-query.ts';

const account = { ...testStores().clickhouse, database: 'default' };

it('answers of ClickHouse come uncompressed, because packing costs both sides several times the question', async () => {
  const sql = 'SELECT number FROM numbers(20000)';
  const answer = await sendStatement(account, { body: sql, deadlineMs: 20_000 });
  expect(answer.headers.get('content-encoding')).toBeNull();
  expect((await answer.text()).trimEnd().split('\n')).toHaveLength(20_000);
  const rows = await readRows(createQueryRows(account)(sql));
  expect([rows.length, rows.at(-1)]).toEqual([20_000, ['19999']]);
});

/** Asks three questions at once, and stands still until ClickHouse has closed their connections. */
async function standStill() {
  const faults: unknown[] = [];
  const target = { ...account, onFault: (fault: unknown) => faults.push(fault) };
  const ask = () => sendStatement(target, { body: 'SELECT 1', deadlineMs: 20_000 });
  const answers = await Promise.all([ask(), ask(), ask()]);
  const [, keptS] = /timeout=(\d+)/.exec(answers[0].headers.get('keep-alive') ?? '') ?? [];
  expect(Number(keptS)).toBeGreaterThan(0);
  for (const answer of answers) await answer.text();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(keptS) * 1_000 + 1_500);
  return { target, faults };
}

it('a question is sent once more where a process that stood still finds its connections closed, and that is no fault', async () => {
  const { target, faults } = await standStill();
  expect(await readRows(createQueryRows(target)('SELECT 7'))).toEqual([[7]]);
  expect(faults).toEqual([]);
});

it('a statement that may change something is sent only once, and the fault of its connection is told', async () => {
  const { target, faults } = await standStill();
  await expect(sendStatement(target, { body: 'SELECT 7', deadlineMs: 20_000 })).rejects.toThrow('fetch failed');
  expect(faults).toHaveLength(1);
});
