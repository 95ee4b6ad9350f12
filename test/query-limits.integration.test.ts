import { createLogger, createMetrics } from '@playline/runtime';
import { createQueryRows, readRows } from '@playline/stores';
import { until } from '@playline/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AnalystsEngine, openAnalystsEngine } from '../infra/clickhouse/test/analysts-engine.ts';
import { queryNatively } from '../infra/clickhouse/test/native-client.ts';
import { freePorts } from '../infra/local/ports.ts';
import { openQueryLimits } from '../services/event-writer/src/query-limits.ts';
import { createPortalShares } from '../services/portal/src/frame/shares.ts';

const START_MS = 120_000;
/** Runs for minutes, in blocks of half a second. */
const SLOW = 'SELECT count() FROM numbers(90000000) WHERE sleep(0.5) = 0';
const STOPPED = /QUERY_WAS_CANCELLED/;
const LIMITED = {
  analyst_1: [
    'max_execution_time',
    'max_memory_usage',
    'max_result_rows',
    'max_concurrent_queries_for_user',
    'readonly',
  ],
  portal: [
    ...['max_execution_time', 'max_memory_usage', 'max_rows_to_read', 'max_bytes_to_read', 'max_result_rows'],
    ...['max_result_bytes', 'max_concurrent_queries_for_user', 'readonly'],
  ],
  reader: ['max_execution_time', 'max_memory_usage', 'readonly'],
};
const CASES = Object.entries(LIMITED).flatMap(([account, names]) => names.map((name) => ({ account, name })));

let engine: AnalystsEngine;
let nativePort = 0;
let limits: { close(): Promise<void> | void };
const metrics = createMetrics('event-writer');
const logged: string[] = [];

beforeAll(async () => {
  [nativePort = 0] = await freePorts(1);
  engine = await openAnalystsEngine({ nativePort });
  const logger = createLogger(
    { service: 'event-writer', level: 'warn' },
    { write: (line: string) => logged.push(line) },
  );
  limits = openQueryLimits({ account: engine.accountOf('writer'), logger, metrics });
}, START_MS);
afterAll(async () => {
  await limits?.close();
  await engine?.close();
}, START_MS);

describe.concurrent('a limit of a ClickHouse account', () => {
  it.each(CASES)('holds for $account when a query sets $name to DEFAULT', { timeout: 30_000 }, async (lifted) => {
    const { text } = await engine.query(lifted.account, `${SLOW} SETTINGS ${lifted.name} = DEFAULT`);
    expect(text).toMatch(STOPPED);
  });

  it('holds when a session sets it to DEFAULT before the query', { timeout: 30_000 }, async () => {
    const session = { search: '&session_id=lifted' };
    await engine.query('analyst_2', 'SET max_execution_time = DEFAULT, max_memory_usage = DEFAULT', session);
    expect((await engine.query('analyst_2', SLOW, session)).text).toMatch(STOPPED);
  });

  it('holds for a query whose id is not valid UTF-8', { timeout: 30_000 }, async () => {
    const id = { search: '&query_id=%FF%27%5C' };
    expect((await engine.query('analyst_7', `${SLOW} SETTINGS max_memory_usage = DEFAULT`, id)).text).toMatch(STOPPED);
  });

  it('holds for a client of the native protocol', { timeout: 30_000 }, async () => {
    const queryAsNative = (sql: string) => queryNatively({ ...engine.accountOf('analyst_6'), port: nativePort, sql });
    expect(await queryAsNative(`${SLOW} SETTINGS max_execution_time = DEFAULT`)).toMatch(/Query was cancelled/);
    expect(await queryAsNative('SELECT number FROM numbers(1500000) SETTINGS max_result_rows = DEFAULT')).toMatch(
      /Quota for user|Query was cancelled/,
    );
  });

  it('cannot be set to DEFAULT by a parameter of the address', async () => {
    for (const { account, name } of CASES) {
      const { ok } = await engine.query(account, 'SELECT 1', { search: `&${name}=DEFAULT` });
      expect([account, name, ok]).toEqual([account, name, false]);
    }
  });

  it('of result rows holds for every query, however short', async () => {
    const rows = 'SELECT number FROM numbers(1500000) SETTINGS max_result_rows = DEFAULT FORMAT Null';
    expect((await engine.query('analyst_3', rows)).text).toContain('QUOTA_EXCEEDED');
    const read = 'SELECT max(number) FROM numbers(3000000000) SETTINGS max_rows_to_read = DEFAULT';
    expect((await engine.query('portal', `${read}, max_bytes_to_read = DEFAULT`)).text).toMatch(
      /QUOTA_EXCEEDED|CANCELLED/,
    );
  });

  it('of result rows counts all queries of an account, with any quota key', async () => {
    const queryWith = (key: number) =>
      engine.query('analyst_3', 'SELECT number FROM numbers(600000) FORMAT Null', {
        headers: { 'x-clickhouse-quota': `key-${key}` },
      });
    // Two of them may be in different intervals.
    const answers = [await queryWith(1), await queryWith(2), await queryWith(3)];
    expect(answers.filter(({ text }) => text.includes('QUOTA_EXCEEDED')).length).toBeGreaterThan(0);
  });

  it('of rows read by the portal counts each project, and administrators, separately', async () => {
    const shares = createPortalShares();
    const query = shares.limitQueries(createQueryRows(engine.accountOf('portal'), { isBound: true }));
    const read = (project: string, account: object | null = null) =>
      shares.run({ project: { id: project }, account, address: '' } as never, () =>
        readRows(query('SELECT max(number) FROM numbers(90000000)')),
      );
    const readMany = async () => {
      for (let count = 0; count < 60; count++) await read('greedy');
    };
    await expect(readMany()).rejects.toMatchObject({ code: '201' });
    const rows = [['89999999']];
    expect([await read('other'), await read('greedy', { isAdministrator: true })]).toEqual([rows, rows]);
  });

  it('of memory holds for all accounts together, and ends the query that lifted its limit', async () => {
    const greedy = 'SELECT uniqExact(number) FROM numbers(4000000000) SETTINGS max_memory_usage = DEFAULT';
    const answer = engine.query('analyst_4', greedy);
    await until('it runs', async () => {
      const running = await engine.runAsOperator("SELECT count() FROM system.processes WHERE user = 'analyst_4'");
      return running.trim() === '1' || Promise.race([answer.then(() => true), false]);
    });
    expect((await engine.query('writer', 'SELECT length(groupArray(number)) FROM numbers(1000000)')).text).toBe(
      '1000000\n',
    );
    expect((await answer).text).toMatch(/QUERY_WAS_CANCELLED|MEMORY_LIMIT_EXCEEDED/);
  });
});

describe('the check of running queries', () => {
  it('logs the account and the setting, and never the text of the query', async () => {
    expect(logged.join('')).toContain('"lifted":["max_execution_time"]');
    expect(logged.join('')).not.toContain('numbers(');
    expect(await metrics.text()).toMatch(
      /playline_event_writer_queries_stopped_total\{reason="lifted a limit"[^}]*\} \d/,
    );
  });

  it('stops no query that keeps or lowers its limits', async () => {
    const kept =
      'SELECT count() FROM numbers(6) WHERE sleepEachRow(0.4) = 0 SETTINGS max_execution_time = 30, max_block_size = 1';
    expect(await engine.query('analyst_5', kept)).toEqual({ ok: true, text: '6\n' });
    const operated =
      'SELECT count() FROM numbers(3) WHERE sleepEachRow(0.4) = 0 SETTINGS max_memory_usage = DEFAULT, max_block_size = 1';
    expect((await engine.runAsOperator(operated)).trim()).toBe('3');
  });
});
