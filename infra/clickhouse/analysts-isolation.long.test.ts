import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { QueryResult } from './test/accounts.ts';
import { type AnalystsEngine, openAnalystsEngine } from './test/analysts-engine.ts';
import { DEMO, fillTwoEnvironments, ofOther, RAW } from './test/two-environments.ts';

const START_MS = 120_000;
/** There are hundreds of functions. */
const ENUMERATION_MS = 180_000;
const CONCURRENT = 4;
let engine: AnalystsEngine;

beforeAll(async () => {
  engine = await openAnalystsEngine();
  await fillTwoEnvironments(engine);
  for (const account of ['analyst_1', 'analyst_raw_1']) await engine.grant(account, DEMO);
}, START_MS);
afterAll(() => engine?.close(), START_MS);

/** Whether an answer reveals something that the account may not see. */
function isLeak({ text }: QueryResult, account = 'analyst_1'): boolean {
  if (engine.passwords.some((password) => text.includes(password))) return true;
  return ofOther(text) || (account === 'analyst_1' && text.toLowerCase().includes(RAW));
}

async function leaksOf(queries: readonly string[], account = 'analyst_1'): Promise<string[]> {
  const leaks: string[] = [];
  const left = [...queries];
  const runAll = async () => {
    for (let sql = left.pop(); sql !== undefined; sql = left.pop())
      if (isLeak(await engine.query(account, sql), account)) leaks.push(sql);
  };
  await Promise.all(Array.from({ length: CONCURRENT }, runAll));
  return leaks;
}

const namesOf = async (sql: string) => (await engine.runAsOperator(sql)).split('\n').filter((name) => name !== '');

describe('an analyst cannot get around the views', () => {
  it('by a table function on any table, database, file or query', { timeout: ENUMERATION_MS }, async () => {
    const functions = await namesOf('SELECT name FROM system.table_functions');
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
      'SELECT * FROM playline.events'
      SELECT * FROM playline.events
      'EXPLAIN', '', (SELECT * FROM playline.events)
      '${engine.secretsFile}'
      '${engine.secretsFile}', 'LineAsString'
      'file://${engine.secretsFile}', 'LineAsString'
      '${engine.url}/?user=views&query=SELECT+1', 'LineAsString'`.split(/\n */);
    const queries = functions.flatMap((name) => sources.map((source) => `SELECT * FROM ${name}(${source}) LIMIT 5`));
    expect(await leaksOf(queries)).toEqual([]);
    expect(await leaksOf(queries, 'analyst_raw_1')).toEqual([]);
  });

  it('by a function on the dictionary or on a file of the server', { timeout: ENUMERATION_MS }, async () => {
    const functions = await namesOf('SELECT name FROM system.functions WHERE NOT is_aggregate ORDER BY name');
    expect(functions).toEqual(expect.arrayContaining(['file', 'dictGet', 'joinGet']));
    // The key of the other environment, written so that the query does not contain it: errors repeat the query.
    const other = "reinterpretAsUInt64(repeat('s', 8))";
    const queries = functions.flatMap((name) => [
      `SELECT ${name}('${engine.secretsFile}')`,
      `SELECT ${name}('/proc/self/environ', 'nothing')`,
      ...(/dict|get/i.test(name) ? [`SELECT hex(${name}('playline.identity_persons', 'person_key', ${other}))`] : []),
    ]);
    expect(await leaksOf(queries)).toEqual([]);
    expect((await engine.query('analyst_1', "SELECT file('/etc/hostname')")).ok).toBe(false);
  });

  it('by a system table: none reveals other accounts, their queries, or passwords', async () => {
    await engine.query('analyst_raw_1', 'SELECT count() FROM analysis_events_raw /* about stray */');
    await engine.runAsOperator('SYSTEM FLUSH LOGS');
    const tables = await namesOf(
      "SELECT concat(database, '.', name) FROM system.tables WHERE database NOT IN ('playline', 'default')",
    );
    expect(tables).toEqual(
      expect.arrayContaining(['system.query_log', 'system.processes', 'system.named_collections', 'system.users']),
    );
    expect(await leaksOf(tables.map((table) => `SELECT * FROM ${table} LIMIT 100000`))).toEqual([]);
    const restricted = 'query_log processes users role_grants row_policies named_collections parts dictionaries';
    for (const table of restricted.split(' '))
      expect((await engine.query('analyst_1', `SELECT * FROM system.${table}`)).text).toMatch(
        /Not enough privileges|^$/,
      );
  });

  it.each([
    ['another account', 'EXECUTE AS operator SELECT count() FROM playline.events'],
    ['a role', 'SET ROLE reads_raw_ids'],
    ['a right', 'GRANT reads_raw_ids TO analyst_1'],
    ['a grant', `INSERT INTO analyst_grants VALUES ('analyst_1', '*', false, now64(3), 99999999999999)`],
    ['the grants', 'SELECT * FROM analyst_grants'],
    ['a view', 'CREATE VIEW mine AS SELECT * FROM events'],
    [
      'a view with the rights of another',
      'CREATE VIEW mine DEFINER = views SQL SECURITY DEFINER AS SELECT * FROM events',
    ],
    ['a temporary table', 'CREATE TEMPORARY TABLE mine AS SELECT * FROM events'],
    ['a temporary view', 'CREATE TEMPORARY VIEW mine AS SELECT * FROM events'],
    ['a function', 'CREATE FUNCTION mine AS x -> x'],
    [
      'a dictionary',
      'CREATE DICTIONARY mine (a UInt64) PRIMARY KEY a SOURCE(CLICKHOUSE(NAME persons)) LAYOUT(FLAT()) LIFETIME(0)',
    ],
    ['a policy', 'CREATE ROW POLICY mine ON events USING 1 TO analyst_1'],
    ['a deleted row', 'ALTER TABLE events DELETE WHERE 1'],
    ['a dropped table', 'DROP TABLE events'],
    ['a copy', "BACKUP TABLE events TO File('mine')"],
    ['the text of the dictionary', 'SHOW CREATE DICTIONARY identity_persons'],
    ['its structure', 'DESCRIBE TABLE identity_persons'],
    ['queries of others', 'SHOW PROCESSLIST'],
    ['the end of queries of others', "KILL QUERY WHERE user = 'operator'"],
    ['accounts', 'SHOW ACCESS'],
    ['a cache of the server', 'SYSTEM DROP MARK CACHE'],
    ['a file', "SELECT * FROM analysis_events INTO OUTFILE 'mine'"],
  ])('by getting %s', async (_what, sql) => {
    for (const account of ['analyst_1', 'analyst_raw_1', 'analyst']) {
      const answer = await engine.query(account, sql);
      const isEmpty = answer.ok && !/[a-z]/i.test(answer.text);
      expect(
        [
          sql,
          isEmpty ||
            /ACCESS_DENIED|READONLY|NOT_IMPLEMENTED|SUPPORT_IS_DISABLED|UNKNOWN|SYNTAX|SET_NON_GRANTED|NOT_SUPPORTED|INTO OUTFILE/.test(
              answer.text,
            ),
        ],
        answer.text,
      ).toEqual([sql, true]);
      expect(isLeak(answer, account === 'analyst' ? 'analyst_raw_1' : account)).toBe(false);
    }
  });

  it('by acting as another account', async () => {
    const sql = 'SELECT currentUser(), count() FROM analysis_events GROUP BY 1';
    const query = async (options: Parameters<AnalystsEngine['query']>[2]) =>
      (await engine.query('analyst_1', sql, options)).text;
    expect(await query({})).toBe('analyst_1\t1\n');
    for (const option of ['initial_user=operator', 'current_user=operator', 'role=reads_raw_ids', 'quota_key=operator'])
      expect(await query({ search: `&${option}` })).not.toMatch(/operator\t|\t2/);
    for (const headers of [{ 'x-clickhouse-initial-user': 'operator' }, { 'x-forwarded-user': 'operator' }] as Record<
      string,
      string
    >[])
      expect(await query({ headers })).toBe('analyst_1\t1\n');
    expect(await query({ search: '&user=operator' })).toContain('AUTHENTICATION');
    expect(await query({ search: '&user=operator&session_id=one' })).toContain('AUTHENTICATION');
  });

  it('by EXPLAIN, which reveals neither rows nor the rights of others', async () => {
    const kinds = ['PLAN indexes = 1, actions = 1', 'PIPELINE', 'SYNTAX', 'QUERY TREE', 'AST', 'ESTIMATE'];
    const queries = kinds.map((kind) => `EXPLAIN ${kind} SELECT * FROM analysis_events WHERE event_name != ''`);
    expect(await leaksOf(queries)).toEqual([]);
    expect((await engine.query('analyst_1', 'EXPLAIN SELECT * FROM events')).text).toContain('Not enough privileges');
  });

  it('by a condition that is evaluated before the row policy', async () => {
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
