import { createLogger, createMetrics } from '@playline/runtime';
import { createQueryRows, readRows } from '@playline/stores';
import { until } from '@playline/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AnalystsEngine, openAnalystsEngine } from '../infra/clickhouse/test/analysts-engine.ts';
import { queryNatively } from '../infra/clickhouse/test/native-client.ts';
import { ACCOUNTS, describeSeparation } from '../infra/clickhouse/test/separation-suite.ts';
import { DEMO, fillTwoEnvironments } from '../infra/clickhouse/test/two-environments.ts';
import { freePorts } from '../infra/local/ports.ts';
import { openQueryLimits } from '../services/event-writer/src/query-limits.ts';
import { createPortalLimiters } from '../services/portal/src/frame/limiters.ts';

const START_MS = 120_000;
const SLOW = 'SELECT count() FROM numbers(90000000) WHERE sleep(0.5) = 0';
const KILLED = /QUERY_WAS_CANCELLED/;
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
const names = async (sql: string) => (await engine.runAsOperator(sql)).split('\n').filter((name) => name !== '');

beforeAll(async () => {
  [nativePort = 0] = await freePorts(1);
  engine = await openAnalystsEngine({ nativePort });
  await fillTwoEnvironments(engine);
  for (const { account, granted } of ACCOUNTS) if (granted === DEMO) await engine.grant(account, DEMO);
}, START_MS);
afterAll(() => engine?.close(), START_MS);

describe('row policies', () => {
  it('exist on every table with an environment_id', async () => {
    const tables = await names(
      `SELECT table FROM system.columns WHERE database = 'playline' AND name = 'environment_id' AND table IN
       (SELECT name FROM system.tables WHERE database = 'playline' AND engine LIKE '%MergeTree') ORDER BY table`,
    );
    expect(tables).toContain('events');
    const guarded = await names(
      "SELECT table FROM system.row_policies WHERE database = 'playline' AND has(apply_to_list, 'views') ORDER BY table",
    );
    expect(guarded).toEqual(tables);
  });

  it('identify an account by its login, because a native-protocol client can claim any current user', async () => {
    const policies = await engine.runAsOperator(
      "SELECT select_filter FROM system.row_policies UNION ALL SELECT as_select FROM system.tables WHERE name = 'readable_environments'",
    );
    expect(policies).toContain('authenticatedUser()');
    // Excludes the conditions for an empty login, because no client can log in with it: a shard of a cluster executes
    // the queries of other nodes without a login.
    const remaining = policies
      .replaceAll(/\(authenticatedUser\(\) = \\'\\'\) AND \(currentUser\(\) = \\'views\\'\)/g, '')
      .replaceAll(/if\(authenticatedUser\(\) = \\'\\', currentUser\(\), authenticatedUser\(\)\)/g, '');
    expect(remaining).not.toMatch(/current_?user|\buser\(|initial/i);
  });

  it('do not filter the dictionary of persons, even if a query of an account without grants loads it', async () => {
    for (const verb of ['DETACH', 'ATTACH']) await engine.runAsOperator(`${verb} DICTIONARY identity_persons`);
    expect((await engine.query('analyst_2', 'SELECT count() FROM persons')).text).toBe('0\n');
    expect(
      await engine.runAsOperator("SELECT element_count FROM system.dictionaries WHERE name = 'identity_persons'"),
    ).toBe('3\n');
  });

  it('allow services and the operator to read every row', async () => {
    for (const account of ['operator', 'writer'])
      expect((await engine.query(account, 'SELECT count() FROM events_identified')).text).toBe('4\n');
  });
});

describeSeparation(() => engine);

describe('query limits enforced by the event writer', () => {
  let limits: { close(): Promise<void> | void };
  const metrics = createMetrics('event-writer');
  const logged: string[] = [];
  beforeAll(() => {
    const destination = { write: (line: string) => logged.push(line) };
    const logger = createLogger({ service: 'event-writer', level: 'warn' }, destination);
    limits = openQueryLimits({ account: engine.accountOf('writer'), logger, metrics });
  });
  afterAll(() => limits?.close());

  describe.concurrent("a ClickHouse account's limit", () => {
    it.each(CASES)(
      'is enforced for $account if a query sets $name to DEFAULT',
      { timeout: 30_000 },
      async ({ account, name }) => {
        const { text } = await engine.query(account, `${SLOW} SETTINGS ${name} = DEFAULT`);
        expect(text).toMatch(KILLED);
      },
    );

    it('is enforced if a session sets it to DEFAULT before the query', { timeout: 30_000 }, async () => {
      const session = { search: '&session_id=lifted' };
      await engine.query('analyst_2', 'SET max_execution_time = DEFAULT, max_memory_usage = DEFAULT', session);
      expect((await engine.query('analyst_2', SLOW, session)).text).toMatch(KILLED);
    });

    it('is enforced for a query id that is not valid UTF-8', { timeout: 30_000 }, async () => {
      const id = { search: '&query_id=%FF%27%5C' };
      expect((await engine.query('analyst_7', `${SLOW} SETTINGS max_memory_usage = DEFAULT`, id)).text).toMatch(KILLED);
    });

    it('is enforced for native-protocol clients', { timeout: 30_000 }, async () => {
      const queryAsNative = (sql: string) => queryNatively({ ...engine.accountOf('analyst_6'), port: nativePort, sql });
      expect(await queryAsNative(`${SLOW} SETTINGS max_execution_time = DEFAULT`)).toMatch(/Query was cancelled/);
      const rows = 'SELECT number FROM numbers(1500000) SETTINGS max_result_rows = DEFAULT';
      // The rows of one query may be in two quota intervals.
      const responses = [await queryAsNative(rows), await queryAsNative(rows), await queryAsNative(rows)];
      expect(responses.some((response) => /Quota for user|Query was cancelled/.test(response))).toBe(true);
    });

    it('cannot be set to DEFAULT by a URL parameter', async () => {
      for (const { account, name } of CASES) {
        const { ok } = await engine.query(account, 'SELECT 1', { search: `&${name}=DEFAULT` });
        expect([account, name, ok]).toEqual([account, name, false]);
      }
    });

    it('on result rows is enforced even for short queries', async () => {
      const rows = 'SELECT number FROM numbers(1500000) SETTINGS max_result_rows = DEFAULT FORMAT Null';
      expect((await engine.query('analyst_3', rows)).text).toContain('QUOTA_EXCEEDED');
      // More than twice the quota, because the query may run in two quota intervals.
      const read = 'SELECT max(number) FROM numbers(2100000000) SETTINGS max_rows_to_read = DEFAULT';
      expect((await engine.query('portal', `${read}, max_bytes_to_read = DEFAULT`)).text).toMatch(
        /QUOTA_EXCEEDED|CANCELLED/,
      );
    });

    it('on result rows counts all queries of an account, regardless of the quota key', async () => {
      const queryWith = (key: number) =>
        engine.query('analyst_3', 'SELECT number FROM numbers(600000) FORMAT Null', {
          headers: { 'x-clickhouse-quota': `key-${key}` },
        });
      // Two of the queries may be in different quota intervals.
      const responses = [await queryWith(1), await queryWith(2), await queryWith(3)];
      expect(responses.filter(({ text }) => text.includes('QUOTA_EXCEEDED')).length).toBeGreaterThan(0);
    });

    it('on rows read by the portal is counted separately per project and for administrators', async () => {
      const limiters = createPortalLimiters();
      const query = limiters.limitQueries(createQueryRows(engine.accountOf('portal'), { isReadonly: true }));
      const read = (project: string, account: object | null = null) =>
        limiters.run({ project: { id: project }, account, address: '' } as never, () =>
          readRows(query('SELECT max(number) FROM numbers(90000000)')),
        );
      const readMany = async () => {
        for (let count = 0; count < 60; count++) await read('greedy');
      };
      await expect(readMany()).rejects.toMatchObject({ code: '201' });
      const rows = [['89999999']];
      expect([await read('other'), await read('greedy', { isAdministrator: true })]).toEqual([rows, rows]);
    });

    it('on memory is enforced across all accounts, and kills the query that removed its limit', async () => {
      const greedy = 'SELECT uniqExact(number) FROM numbers(4000000000) SETTINGS max_memory_usage = DEFAULT';
      const response = engine.query('analyst_4', greedy);
      await until('the query runs', async () => {
        const running = await engine.runAsOperator("SELECT count() FROM system.processes WHERE user = 'analyst_4'");
        return running.trim() === '1' || Promise.race([response.then(() => true), false]);
      });
      expect((await engine.query('writer', 'SELECT length(groupArray(number)) FROM numbers(1000000)')).text).toBe(
        '1000000\n',
      );
      expect((await response).text).toMatch(/QUERY_WAS_CANCELLED|MEMORY_LIMIT_EXCEEDED/);
    });
  });

  describe('the event writer', () => {
    it('logs the account and the setting but not the query', async () => {
      expect(logged.join('')).toContain('"lifted":["max_execution_time"]');
      expect(logged.join('')).not.toContain('numbers(');
      expect(await metrics.text()).toMatch(
        /playline_event_writer_queries_stopped_total\{reason="lifted a limit"[^}]*\} \d/,
      );
    });

    it('does not kill queries that keep or lower their limits', async () => {
      const limited =
        'SELECT count() FROM numbers(6) WHERE sleepEachRow(0.4) = 0 SETTINGS max_execution_time = 30, max_block_size = 1';
      expect(await engine.query('analyst_5', limited)).toEqual({ ok: true, text: '6\n' });
      const unlimited =
        'SELECT count() FROM numbers(3) WHERE sleepEachRow(0.4) = 0 SETTINGS max_memory_usage = DEFAULT, max_block_size = 1';
      expect((await engine.runAsOperator(unlimited)).trim()).toBe('3');
    });
  });
});
