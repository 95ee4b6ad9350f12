import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AnalystsEngine, openAnalystsEngine } from './test/analysts-engine.ts';
import { DEMO, fillTwoEnvironments, ofOther, RAW } from './test/two-environments.ts';

const START_MS = 120_000;
/** ClickHouse has some fifteen hundred settings. */
const ALL_SETTINGS_MS = 300_000;
const AT_ONCE = 4;
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

/**
 * An expression that fails with a known text when it is evaluated over raw ids. The expression contains the text
 * backwards, so an error that only repeats the expression does not look like a leak.
 */
const PROBE = `throwIf(user_id LIKE ''${RAW}%'', reverse(''nar eborp eht''))`;

/** A value that differs from the current one. */
function otherOf({ type, value }: Setting): string {
  if (type === 'Bool') return value === '1' ? '0' : '1';
  if (type === 'Map') return `{'playline.events': '${PROBE}', 'events': '${PROBE}'}`;
  return type === 'String' ? `'${PROBE}'` : value === '0' ? '1' : '0';
}

/**
 * Finds in answers and errors what reveals data of the other environment, or raw ids to an account that may not see
 * them.
 */
async function tellingOf(account: string, questions: readonly string[]): Promise<string[]> {
  const telling: string[] = [];
  const left = [...questions];
  const askAll = async () => {
    for (let sql = left.pop(); sql !== undefined; sql = left.pop()) {
      const { text } = await engine.query(account, sql);
      const isSaid = (word: string) => text.includes(word);
      const raw = account === 'analyst_1' && (isSaid('the probe ran') || new RegExp(`${RAW}-ours`, 'i').test(text));
      if (raw || ofOther(text) || engine.passwords.some(isSaid)) telling.push(sql);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, askAll));
  return telling;
}

describe('a setting that an analyst sends with a query', () => {
  it('reveals no row of another environment and no raw id, whichever setting it is', {
    timeout: ALL_SETTINGS_MS,
  }, async () => {
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
    expect(await tellingOf('analyst_1', texts)).toEqual([]);
    // Without settings that only slow answers down.
    const quick = settings.filter(({ name }) => !/bandwidth|memory_usage_for_user/.test(name));
    const all = quick.map((setting) => `SELECT * FROM events_exact ${sent(setting)}`);
    expect(await tellingOf('analyst_raw_1', all)).toEqual([]);
  });

  it.each([
    [
      'an expression over what stands below a view',
      `additional_table_filters = {'playline.events': 'user_id = ''x'''}`,
    ],
    ['an expression for replicas', `parallel_replicas_custom_key = 'user_id'`],
    ['answers that are kept', 'use_query_cache = 1'],
    ['what was remembered of others’ questions', 'use_query_condition_cache = 1'],
    ['a file of the server as a format', `format_template_row = '/etc/hostname'`],
    ['a file of the server as a schema', `format_schema = '/etc/hostname'`],
    ['a file to write', `output_format_schema = '/tmp/mine'`],
    ['another file to write', `input_format_record_errors_file_path = '/tmp/mine'`],
    ['the inside of the server', 'allow_introspection_functions = 1'],
    ['leave to write', 'readonly = 0'],
    ['more time', 'max_execution_time = 61'],
    ['any time', 'max_execution_time = 0'],
    ['more memory', 'max_memory_usage = 2000000001'],
    ['any memory', 'max_memory_usage = 0'],
    ['that another query ends when memory is short', 'memory_overcommit_ratio_denominator = 1000000000000'],
    ['more rows', 'max_result_rows = 1000001'],
    ['any rows', 'max_result_rows = 0'],
    ['more questions at once', 'max_concurrent_queries_for_user = 0'],
  ])('is refused when it requests %s', async (_what, setting) => {
    const ways = [`SELECT 1 SETTINGS ${setting}`, `SET ${setting}`];
    for (const account of ['analyst_1', 'analyst_raw_1', 'analyst'])
      for (const sql of ways) {
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
  ])('is reported in a sentence with the value and the limit: %s', async (_what, sql, sentence) => {
    const { ok, text } = await engine.query('analyst_1', sql);
    expect(ok).toBe(false);
    expect(text).toMatch(sentence);
  });

  it('is reported in a sentence when too many queries run at once, and another account can still send queries', async () => {
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
