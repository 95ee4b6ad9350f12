import { testStores } from '@playline/testkit';
import { expect, it } from 'vitest';
import { createQueryRows, readRows, sendStatement } from './clickhouse-query.ts';

const account = { ...testStores().clickhouse, database: 'default' };

it("ClickHouse responses are uncompressed, because compression costs several times the query's CPU time", async () => {
  const sql = 'SELECT number FROM numbers(20000)';
  const response = await sendStatement(account, { body: sql, deadlineMs: 20_000 });
  expect(response.headers.get('content-encoding')).toBeNull();
  expect((await response.text()).trimEnd().split('\n')).toHaveLength(20_000);
  const rows = await readRows(createQueryRows(account)(sql));
  expect([rows.length, rows.at(-1)]).toEqual([20_000, ['19999']]);
});

/** Sends three statements, then blocks the process until ClickHouse has closed the connections. */
async function suspend() {
  const faults: unknown[] = [];
  const target = { ...account, onFault: (fault: unknown) => faults.push(fault) };
  const send = () => sendStatement(target, { body: 'SELECT 1', deadlineMs: 20_000 });
  const responses = await Promise.all([send(), send(), send()]);
  const [, timeoutS] = /timeout=(\d+)/.exec(responses[0].headers.get('keep-alive') ?? '') ?? [];
  expect(Number(timeoutS)).toBeGreaterThan(0);
  for (const response of responses) await response.text();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(timeoutS) * 1_000 + 1_500);
  return { target, faults };
}

it('after ClickHouse has closed all idle connections, a query is retried without reporting a fault, and a write fails', async () => {
  const { target, faults } = await suspend();
  const write = sendStatement(target, { body: 'SELECT 7', deadlineMs: 20_000 });
  const query = readRows(createQueryRows(target)('SELECT 7'));
  await expect(write).rejects.toThrow('fetch failed');
  expect(await query).toEqual([[7]]);
  expect(faults).toHaveLength(1);
});
