import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { QueryResult } from './test/accounts.ts';
import { type AnalystsEngine, openAnalystsEngine } from './test/analysts-engine.ts';
import { DEMO, fillTwoEnvironments, isFromOther, RAW } from './test/two-environments.ts';

const START_MS = 120_000;
/** ClickHouse has hundreds of functions and about 1,500 settings. */
const ENUMERATION_MS = 300_000;
const CONCURRENT = 4;
let engine: AnalystsEngine;

const open = async (nodes: number) => {
  engine = await openAnalystsEngine({ nodes });
  await fillTwoEnvironments(engine);
  for (const account of ['analyst_1', 'analyst_raw_1']) await engine.grant(account, DEMO);
};

/** Reports whether a response contains data that the account may not read. Only analyst_raw_1 may read raw ids. */
function isLeak({ text }: QueryResult, account = 'analyst_1'): boolean {
  if (engine.passwords.some((password) => text.includes(password))) return true;
  return isFromOther(text) || (account !== 'analyst_raw_1' && text.toLowerCase().includes(RAW));
}

/** Variant of `isLeak` for queries that contain raw ids, because error messages repeat the query. */
const isLeakOfSetting: typeof isLeak = ({ text }, account) =>
  isLeak({ ok: true, text: text.replaceAll(new RegExp(RAW, 'gi'), '') }, account) ||
  (account === 'analyst_1' && (text.includes('the probe ran') || new RegExp(`${RAW}-own`, 'i').test(text)));

async function findLeaks(queries: readonly string[], account = 'analyst_1', isLeaked = isLeak): Promise<string[]> {
  const leaks: string[] = [];
  const pending = [...queries];
  const runAll = async () => {
    for (let sql = pending.pop(); sql !== undefined; sql = pending.pop())
      if (isLeaked(await engine.query(account, sql), account)) leaks.push(sql);
  };
  await Promise.all(Array.from({ length: CONCURRENT }, runAll));
  return leaks;
}

const readNames = async (sql: string) => (await engine.runAsOperator(sql)).split('\n').filter((name) => name !== '');

interface Setting {
  readonly name: string;
  readonly type: string;
  readonly value: string;
}

/** Fails with a known message on a raw id. The message is reversed here, because error messages repeat the query. */
const PROBE = `throwIf(user_id LIKE ''${RAW}%'', reverse(''nar eborp eht''))`;

function toOtherValue({ type, value }: Setting): string {
  if (type === 'Bool') return value === '1' ? '0' : '1';
  if (type === 'Map') return `{'playline.events': '${PROBE}', 'events': '${PROBE}'}`;
  return type === 'String' ? `'${PROBE}'` : value === '0' ? '1' : '0';
}

describe.each([1, 2])('with %i nodes of ClickHouse', (nodes) => {
  beforeAll(() => open(nodes), START_MS);
  afterAll(() => engine?.close(), START_MS);

  describe('an analyst or the portal cannot bypass the views', () => {
    it('with a table function on any table, database, file or query', { timeout: ENUMERATION_MS }, async () => {
      const functions = await readNames('SELECT name FROM system.table_functions');
      expect(functions).toEqual(
        expect.arrayContaining(['merge', 'remote', 'file', 'url', 'dictionary', 'loop', 'viewExplain']),
      );
      const host = new URL(engine.url).host;
      const sources = `playline.events
        playline.identity_persons
        'playline.identity_persons'
        'playline', 'events'
        'playline', '.*'
        playline, events
        '${host}', playline.events
        '${host}', 'playline', 'events'
        'default', 'playline', 'events'
        'playline_1', 'playline', 'events'
        playline_1, playline.events
        'playline_1_everywhere', view(SELECT * FROM playline.events)
        playline_all.events
        playline_all.rows_of_events
        playline_rows.events
        'SELECT * FROM playline.events'
        SELECT * FROM playline.events
        'EXPLAIN', '', (SELECT * FROM playline.events)
        '${engine.secretsFile}'
        '${engine.secretsFile}', 'LineAsString'
        'file://${engine.secretsFile}', 'LineAsString'
        '${engine.url}/?user=views&query=SELECT+1', 'LineAsString'`.split(/\n */);
      const queries = functions.flatMap((name) => sources.map((source) => `SELECT * FROM ${name}(${source}) LIMIT 5`));
      for (const account of ['analyst_1', 'analyst_raw_1', 'portal'])
        expect(await findLeaks(queries, account), account).toEqual([]);
    });

    it('with a function on the dictionary or on a server file', { timeout: ENUMERATION_MS }, async () => {
      const functions = await readNames(
        "SELECT name FROM system.functions WHERE NOT is_aggregate AND (ifNull(deterministic, 0) = 0 OR match(name, '(?i)dict|get|file|join'))",
      );
      expect(functions).toEqual(expect.arrayContaining(['file', 'dictGet', 'joinGet']));
      // The key of the other environment, computed by the query, because error messages repeat the query.
      const other = "reinterpretAsUInt64(repeat('s', 8))";
      const queries = functions.flatMap((name) => [
        `SELECT ${name}('${engine.secretsFile}')`,
        `SELECT ${name}('/proc/self/environ', 'nothing')`,
        ...(/dict|get/i.test(name) ? [`SELECT hex(${name}('playline.identity_persons', 'person_key', ${other}))`] : []),
      ]);
      for (const account of ['analyst_1', 'portal']) {
        expect(await findLeaks(queries, account), account).toEqual([]);
        expect((await engine.query(account, "SELECT file('/etc/hostname')")).ok).toBe(false);
      }
    });

    it('with a system table that would reveal other accounts, their queries, or passwords', async () => {
      await engine.query('analyst_raw_1', 'SELECT count() FROM analysis_events_raw /* about stray */');
      await engine.runAsOperator('SYSTEM FLUSH LOGS');
      const tables = await readNames(
        "SELECT concat(database, '.', name) FROM system.tables WHERE database NOT IN ('playline', 'playline_all', 'playline_rows', 'default')",
      );
      expect(tables).toEqual(
        expect.arrayContaining(['system.query_log', 'system.processes', 'system.named_collections', 'system.users']),
      );
      const queries = tables.map((table) => `SELECT * FROM ${table} LIMIT 10000`);
      for (const account of ['analyst_1', 'portal']) expect(await findLeaks(queries, account), account).toEqual([]);
      const restricted = 'query_log processes users role_grants row_policies named_collections parts dictionaries';
      for (const table of restricted.split(' '))
        expect((await engine.query('analyst_1', `SELECT * FROM system.${table}`)).text).toMatch(
          /Not enough privileges|^$/,
        );
    });

    it.each([
      ['another account', 'EXECUTE AS operator SELECT count() FROM playline.events'],
      ['a role', 'SET ROLE reads_raw_ids'],
      ['a privilege', 'GRANT reads_raw_ids TO analyst_1'],
      [
        'a row in analyst_grants',
        `INSERT INTO analyst_grants VALUES ('analyst_1', '*', false, now64(3), 99999999999999)`,
      ],
      ['the rows of analyst_grants', 'SELECT * FROM analyst_grants'],
      ['a view', 'CREATE VIEW mine AS SELECT * FROM events'],
      [
        'a view with the rights of another account',
        'CREATE VIEW mine DEFINER = views SQL SECURITY DEFINER AS SELECT * FROM events',
      ],
      ['a temporary table', 'CREATE TEMPORARY TABLE mine AS SELECT * FROM events'],
      ['a temporary view', 'CREATE TEMPORARY VIEW mine AS SELECT * FROM events'],
      ['a function', 'CREATE FUNCTION mine AS x -> x'],
      [
        'a dictionary',
        'CREATE DICTIONARY mine (a UInt64) PRIMARY KEY a SOURCE(CLICKHOUSE(NAME persons)) LAYOUT(FLAT()) LIFETIME(0)',
      ],
      ['a row policy', 'CREATE ROW POLICY mine ON events USING 1 TO analyst_1'],
      ['the deletion of rows', 'ALTER TABLE events DELETE WHERE 1'],
      ['the removal of a table', 'DROP TABLE events'],
      ['a backup', "BACKUP TABLE events TO File('mine')"],
      ['the definition of the dictionary', 'SHOW CREATE DICTIONARY identity_persons'],
      ['the columns of the dictionary', 'DESCRIBE TABLE identity_persons'],
      ['queries of other accounts', 'SHOW PROCESSLIST'],
      ['the cancellation of other queries', "KILL QUERY WHERE user = 'operator'"],
      ['a list of accounts', 'SHOW ACCESS'],
      ['the removal of a server cache', 'SYSTEM DROP MARK CACHE'],
      ['a file', "SELECT * FROM analysis_events INTO OUTFILE 'mine'"],
    ])('with a statement that requests %s', async (_what, sql) => {
      for (const account of ['analyst_1', 'analyst_raw_1', 'analyst']) {
        const response = await engine.query(account, sql);
        const isEmpty = response.ok && !/[a-z]/i.test(response.text);
        expect(
          [
            sql,
            isEmpty ||
              /ACCESS_DENIED|READONLY|NOT_IMPLEMENTED|SUPPORT_IS_DISABLED|UNKNOWN|SYNTAX|SET_NON_GRANTED|NOT_SUPPORTED|INTO OUTFILE/.test(
                response.text,
              ),
          ],
          response.text,
        ).toEqual([sql, true]);
        expect(isLeak(response, account === 'analyst' ? 'analyst_raw_1' : account)).toBe(false);
      }
    });

    it('by impersonating another account', async () => {
      const sql = 'SELECT currentUser(), count() FROM analysis_events GROUP BY 1';
      const query = async (options: Parameters<AnalystsEngine['query']>[2]) =>
        (await engine.query('analyst_1', sql, options)).text;
      expect(await query({})).toBe('analyst_1\t1\n');
      for (const option of [
        'initial_user=operator',
        'current_user=operator',
        'role=reads_raw_ids',
        'quota_key=operator',
      ])
        expect(await query({ search: `&${option}` })).not.toMatch(/operator\t|\t2/);
      for (const headers of [{ 'x-clickhouse-initial-user': 'operator' }, { 'x-forwarded-user': 'operator' }] as Record<
        string,
        string
      >[])
        expect(await query({ headers })).toBe('analyst_1\t1\n');
      expect(await query({ search: '&user=operator' })).toContain('AUTHENTICATION');
      expect(await query({ search: '&user=operator&session_id=one' })).toContain('AUTHENTICATION');
    });

    it('with EXPLAIN, which would reveal rows or the rights of other accounts', async () => {
      const kinds = ['PLAN indexes = 1, actions = 1', 'PIPELINE', 'SYNTAX', 'QUERY TREE', 'AST', 'ESTIMATE'];
      const queries = ['analysis_events', 'events_per_day'].flatMap((view) =>
        kinds.map((kind) => `EXPLAIN ${kind} SELECT * FROM ${view} WHERE event_name != ''`),
      );
      expect(await findLeaks(queries)).toEqual([]);
      expect((await engine.query('analyst_1', 'EXPLAIN SELECT * FROM events')).text).toContain('Not enough privileges');
    });

    it('with a condition that is evaluated before the row policy', async () => {
      for (const account of ['analyst_1', 'analyst_raw_1'])
        for (const condition of ["throwIf(environment_id = 'demo-stray') = 0", "throwIf(event_name LIKE 'stray%') = 0"])
          expect((await engine.query(account, `SELECT count() FROM analysis_events WHERE ${condition}`)).text).toBe(
            '1\n',
          );
      for (const sql of [
        'SELECT min(environment_id), max(environment_id), count() FROM events_exact',
        'SELECT any(environment_id), max(environment_id), 2 FROM events_exact',
      ])
        expect((await engine.query('analyst_raw_1', sql)).text).toBe(`${DEMO}\t${DEMO}\t2\n`);
    });
  });

  describe("a setting in an analyst's query", () => {
    it('reveals no row of another environment and no raw id', { timeout: ENUMERATION_MS }, async () => {
      const rows = await engine.runAsOperator(
        'SELECT name, type, value FROM system.settings WHERE NOT is_obsolete FORMAT JSONEachRow',
      );
      const settings = rows
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as Setting);
      expect(settings.length).toBeGreaterThan(1_000);
      const isText = ({ type }: Setting) => type === 'String' || type === 'Map';
      const sent = (setting: Setting) => `SETTINGS ${setting.name} = ${toOtherValue(setting)}`;
      // The account's constraints do not apply to the settings of a subquery.
      const texts = settings
        .filter(isText)
        .map((setting) => `SELECT * FROM analysis_events ${sent(setting)}`)
        .flatMap((sql) => [sql, `SELECT * FROM (${sql})`]);
      const filter = texts.find((sql) => sql.includes('additional_table_filters')) ?? '';
      const onTable = filter.replace('analysis_events', 'events');
      expect((await engine.query('operator', onTable)).text).toContain('the probe ran');
      expect(await findLeaks(texts, 'analyst_1', isLeakOfSetting)).toEqual([]);
      const safeSettings = settings.filter(({ name }) => !/bandwidth|memory_usage_for_user/.test(name));
      const all = safeSettings.map((setting) => `SELECT environment_id, event_name FROM events_exact ${sent(setting)}`);
      expect(await findLeaks(all, 'analyst_raw_1', isLeakOfSetting)).toEqual([]);
    });

    it.each([
      ['a filter on the table below a view', `additional_table_filters = {'playline.events': 'user_id = ''x'''}`],
      ['an expression for replicas', `parallel_replicas_custom_key = 'user_id'`],
      ['cached results', 'use_query_cache = 1'],
      ['cached conditions of other queries', 'use_query_condition_cache = 1'],
      ['a server file as a format', `format_template_row = '/etc/hostname'`],
      ['a server file as a schema', `format_schema = '/etc/hostname'`],
      ['an output file for the schema', `output_format_schema = '/tmp/mine'`],
      ['an output file for errors', `input_format_record_errors_file_path = '/tmp/mine'`],
      ['introspection of the server', 'allow_introspection_functions = 1'],
      ['permission to write', 'readonly = 0'],
      ['more time', 'max_execution_time = 61'],
      ['unlimited time', 'max_execution_time = 0'],
      ['more memory', 'max_memory_usage = 2000000001'],
      ['unlimited memory', 'max_memory_usage = 0'],
      ['cancellation of another query when memory is exhausted', 'memory_overcommit_ratio_denominator = 1000000000000'],
      ['more rows', 'max_result_rows = 1000001'],
      ['unlimited rows', 'max_result_rows = 0'],
      ['more concurrent queries', 'max_concurrent_queries_for_user = 0'],
    ])('is rejected when it requests %s', async (_what, setting) => {
      const queries = [`SELECT 1 SETTINGS ${setting}`, `SET ${setting}`];
      for (const account of ['analyst_1', 'analyst_raw_1', 'analyst'])
        for (const sql of queries) {
          const { ok, text } = await engine.query(account, sql);
          expect([sql, ok, /SETTING_CONSTRAINT_VIOLATION|READONLY/.test(text)], text).toEqual([sql, false, true]);
        }
    });

    it('is accepted when drivers and dashboards commonly send it', async () => {
      const sent =
        "max_execution_time = 30, max_result_rows = 1000, join_use_nulls = 1, date_time_output_format = 'iso', log_comment = 'x'";
      expect(await engine.query('analyst_1', `SELECT count() FROM analysis_events SETTINGS ${sent}`)).toEqual({
        ok: true,
        text: '1\n',
      });
    });
  });

  describe('an exceeded query limit', () => {
    it.each([
      [
        'time',
        'SELECT sum(sleepEachRow(0.2)) FROM numbers(20) SETTINGS max_execution_time = 1, max_block_size = 1',
        /Timeout exceeded: elapsed [\d.]+ \w+, maximum: 1000 ms/,
      ],
      [
        'memory',
        'SELECT length(groupArray(number)) FROM numbers(30000000) SETTINGS max_memory_usage = 50000000',
        /[Mm]emory limit exceeded: would use [\d.]+ MiB .*maximum: 47.68 MiB/,
      ],
      [
        'rows',
        'SELECT number FROM numbers(1000001) FORMAT Null',
        /Limit for result exceeded, max rows: 1.00 million, current rows: 1.\d+ million/,
      ],
    ])('on %s is reported with the value and the limit', async (_what, sql, sentence) => {
      const { ok, text } = await engine.query('analyst_1', sql);
      expect(ok).toBe(false);
      expect(text).toMatch(sentence);
    });

    it('on concurrent queries is reported and does not affect another account', async () => {
      const slow = () =>
        engine.query('analyst_1', 'SELECT sum(sleepEachRow(0.5)) FROM numbers(4) SETTINGS max_block_size = 1');
      const responses = Promise.all(Array.from({ length: 30 }, slow));
      expect((await engine.query('analyst_raw_1', 'SELECT 1')).text).toBe('1\n');
      const refused = (await responses).filter(({ ok }) => !ok);
      expect(refused.length).toBeGreaterThan(0);
      for (const { text } of refused)
        expect(text).toMatch(/Too many simultaneous queries for user analyst_1\. Current: \d+, maximum: 20/);
    });
  });
});
