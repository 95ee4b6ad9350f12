import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AnalystsEngine, openAnalystsEngine } from './test/analysts-engine.ts';
import { DEMO, fillTwoEnvironments, ofOther, RAW } from './test/two-environments.ts';

const START_MS = 120_000;
/** ClickHouse has some fifteen hundred settings. */
const ALL_SETTINGS_MS = 300_000;
const CONCURRENT = 4;
let engine: AnalystsEngine;

beforeAll(async () => {
  engine = await openAnalystsEngine();
  await fillTwoEnvironments(engine);
  for (const account of ['analyst_1', 'analyst_raw_1']) await engine.grant(account, DEMO);
}, START_MS);
afterAll(() => engine?.close(), START_MS);

interface Setting {
  readonly name: string;
  readonly type: string;
  readonly value: string;
}

/** Fails with a known text over raw ids. It has the text backwards, because errors repeat the query. */
const PROBE = `throwIf(user_id LIKE ''${RAW}%'', reverse(''nar eborp eht''))`;

/** A value that differs from the current one. */
function otherOf({ type, value }: Setting): string {
  if (type === 'Bool') return value === '1' ? '0' : '1';
  if (type === 'Map') return `{'playline.events': '${PROBE}', 'events': '${PROBE}'}`;
  return type === 'String' ? `'${PROBE}'` : value === '0' ? '1' : '0';
}

/** Queries whose answers reveal data of the other environment, or raw ids to an account without them. */
async function leaksOf(account: string, queries: readonly string[]): Promise<string[]> {
  const leaks: string[] = [];
  const left = [...queries];
  const runAll = async () => {
    for (let sql = left.pop(); sql !== undefined; sql = left.pop()) {
      const { text } = await engine.query(account, sql);
      const has = (part: string) => text.includes(part);
      const raw = account === 'analyst_1' && (has('the probe ran') || new RegExp(`${RAW}-own`, 'i').test(text));
      if (raw || ofOther(text) || engine.passwords.some(has)) leaks.push(sql);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENT }, runAll));
  return leaks;
}

describe('a setting of an analyst', () => {
  it('reveals no row of another environment and no raw id', { timeout: ALL_SETTINGS_MS }, async () => {
    const rows = await engine.runAsOperator(
      'SELECT name, type, value FROM system.settings WHERE NOT is_obsolete FORMAT JSONEachRow',
    );
    const settings = rows
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Setting);
    expect(settings.length).toBeGreaterThan(1_000);
    const isText = ({ type }: Setting) => type === 'String' || type === 'Map';
    const sent = (setting: Setting) => `SETTINGS ${setting.name} = ${otherOf(setting)}`;
    // No constraint of the account applies to the settings of a subquery.
    const texts = settings
      .filter(isText)
      .map((setting) => `SELECT * FROM analysis_events ${sent(setting)}`)
      .flatMap((sql) => [sql, `SELECT * FROM (${sql})`]);
    const filter = texts.find((sql) => sql.includes('additional_table_filters')) ?? '';
    const onTable = filter.replace('analysis_events', 'events');
    expect((await engine.query('operator', onTable)).text).toContain('the probe ran');
    expect(await leaksOf('analyst_1', texts)).toEqual([]);
    // Without settings that only slow answers down.
    const quick = settings.filter(({ name }) => !/bandwidth|memory_usage_for_user/.test(name));
    const all = quick.map((setting) => `SELECT * FROM events_exact ${sent(setting)}`);
    expect(await leaksOf('analyst_raw_1', all)).toEqual([]);
  });

  it.each([
    ['a filter on the table below a view', `additional_table_filters = {'playline.events': 'user_id = ''x'''}`],
    ['an expression for replicas', `parallel_replicas_custom_key = 'user_id'`],
    ['cached answers', 'use_query_cache = 1'],
    ['cached conditions of other queries', 'use_query_condition_cache = 1'],
    ['a file of the server as a format', `format_template_row = '/etc/hostname'`],
    ['a file of the server as a schema', `format_schema = '/etc/hostname'`],
    ['a file to write', `output_format_schema = '/tmp/mine'`],
    ['another file to write', `input_format_record_errors_file_path = '/tmp/mine'`],
    ['introspection of the server', 'allow_introspection_functions = 1'],
    ['permission to write', 'readonly = 0'],
    ['more time', 'max_execution_time = 61'],
    ['unlimited time', 'max_execution_time = 0'],
    ['more memory', 'max_memory_usage = 2000000001'],
    ['unlimited memory', 'max_memory_usage = 0'],
    ['that another query ends when memory is exhausted', 'memory_overcommit_ratio_denominator = 1000000000000'],
    ['more rows', 'max_result_rows = 1000001'],
    ['unlimited rows', 'max_result_rows = 0'],
    ['more concurrent queries', 'max_concurrent_queries_for_user = 0'],
  ])('is refused when it requests %s', async (_what, setting) => {
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

describe('an exceeded limit', () => {
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
  ])('of %s is reported with the value and the limit', async (_what, sql, sentence) => {
    const { ok, text } = await engine.query('analyst_1', sql);
    expect(ok).toBe(false);
    expect(text).toMatch(sentence);
  });

  it('of concurrent queries is reported, and does not affect another account', async () => {
    const slow = () =>
      engine.query('analyst_1', 'SELECT sum(sleepEachRow(0.5)) FROM numbers(4) SETTINGS max_block_size = 1');
    const answers = Promise.all(Array.from({ length: 30 }, slow));
    expect((await engine.query('analyst_raw_1', 'SELECT 1')).text).toBe('1\n');
    const refused = (await answers).filter(({ ok }) => !ok);
    expect(refused.length).toBeGreaterThan(0);
    for (const { text } of refused)
      expect(text).toMatch(/Too many simultaneous queries for user analyst_1\. Current: \d+, maximum: 20/);
  });
});
