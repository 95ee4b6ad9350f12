import { randomUUID } from 'node:crypto';
import { until } from '@playline/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openPortalAccount, type PortalAccount } from './test/portal-account.ts';
import { DEMO, isFromOther, OTHER, toArguments, toCall } from './test/portal-rows.ts';
import { toArguments as toAnalystArguments } from './test/two-environments.ts';

const START_MS = 120_000;
const VIEWS = Object.keys(toArguments(DEMO)).sort();
/** `QUERY_WAS_CANCELLED` in the engine's query log. */
const CANCELLED = '394';
/** Matches the argument that selects the environment, project or contracts. */
const SCOPE = /^(environments?|project|contracts?)$/;
/** Values that would match several names if they were interpreted as a pattern, a list or SQL. */
const INJECTIONS = ['%', '*', '', "x') OR ('1' = '1"];
const INJECTED_CONTRACTS = ['main *', 'main % ', 'main 0x'];
const INJECTED_IDS = ['demo%', 'game%', "demo-2' --", "' OR environment_id = 'demo-2"];
const [demo, other] = [toArguments(DEMO), toArguments(OTHER)];

let account: PortalAccount;
const names = async (sql: string) => (await account.runAsOperator(sql)).split('\n').filter((name) => name !== '');
const query = (sql: string, search = '') => account.query('portal', sql, { search });
/** Repeats a query that the time limit of the account cancelled, because a busy machine may exceed it. */
async function read(source: string) {
  const sql = `SELECT * FROM ${source} FORMAT JSONEachRow`;
  let response = await query(sql);
  await until('the query ends within its time limit', async () => {
    if (response.text.includes('TIMEOUT_EXCEEDED')) response = await query(sql);
    return !response.text.includes('TIMEOUT_EXCEEDED');
  });
  return response;
}

beforeAll(async () => {
  account = await openPortalAccount();
}, START_MS);
afterAll(() => account?.close(), START_MS);

describe.concurrent("the portal's account", () => {
  it('can read the portal views and no other view, table or dictionary', async () => {
    const all = await names("SELECT name FROM system.tables WHERE database = 'playline' ORDER BY name");
    expect(all).toEqual(expect.arrayContaining([...VIEWS, 'identity_persons', 'events', 'audit_log', 'events_exact']));
    for (const name of all.filter((each) => !VIEWS.includes(each)))
      expect([name, (await read(name + toAnalystArguments(name, 'demo-own'))).text]).toEqual([
        name,
        expect.stringContaining('Not enough privileges'),
      ]);
    expect((await query('SHOW TABLES')).text.trim().split('\n').sort()).toEqual(VIEWS);
  });

  it.each(VIEWS)(
    'reads rows of the requested environment from %s, and no row of an environment with the same prefix',
    async (view) => {
      const [own, stray] = [await read(toCall(view, demo[view]!)), await read(toCall(view, other[view]!))];
      expect([own.ok, own.text === '', isFromOther(own.text)]).toEqual([true, false, false]);
      expect([stray.ok, isFromOther(stray.text)]).toEqual([true, true]);
    },
  );

  it.each(VIEWS)('receives an error from %s when an argument is missing', async (view) => {
    for (const sql of [view, `${view}()`]) expect([sql, (await read(sql)).ok]).toEqual([sql, false]);
    for (const [at, missing] of Object.keys(demo[view]!).entries()) {
      const { [missing]: _, ...rest } = demo[view]!;
      const response = await query(`SELECT ${['*', 'count()', '1'][at % 3]} FROM ${toCall(view, rest)}`);
      expect([view, missing, response.ok]).toEqual([view, missing, false]);
    }
  });

  it.each(VIEWS)('cannot pass a pattern, a list or SQL as an argument of %s', async (view) => {
    const [argument, original] = Object.entries(demo[view]!).find(([name]) => SCOPE.test(name))!;
    for (const text of [...INJECTIONS, ...(argument.startsWith('contract') ? INJECTED_CONTRACTS : INJECTED_IDS)]) {
      const literal = `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
      const value = original.startsWith('[') ? `[${literal}]` : literal;
      const response = await read(toCall(view, { ...demo[view]!, [argument]: value }));
      expect([text, response]).toEqual([text, { ok: true, text: '' }]);
    }
  });

  it.each(VIEWS)('reads no row of another environment from %s with the ids of that environment', async (view) => {
    const mixed = { ...other[view]! };
    for (const name of Object.keys(mixed).filter((each) => SCOPE.test(each))) mixed[name] = demo[view]![name]!;
    const { ok, text } = await read(toCall(view, mixed));
    expect([ok, isFromOther(text)]).toEqual([true, false]);
  });
});

describe.concurrent("the portal's account cannot bypass its views", () => {
  it('with a system table', async () => {
    await account.runAsOperator('SYSTEM FLUSH LOGS query_log');
    for (const table of ['query_log', 'processes', 'parts', 'dictionaries', 'users'])
      expect((await query(`SELECT * FROM system.${table}`)).text).toMatch(/Not enough privileges|^$/);
  });

  it.each([
    ['a setting in a query', `SELECT 1 SETTINGS max_execution_time = 60`],
    ['a filter on the table of a view', `SELECT 1 SETTINGS additional_table_filters = {'events': '1'}`],
    ['a setting', 'SET max_execution_time = 60'],
    ['a row', "INSERT INTO audit_log (project_id) VALUES ('game')"],
    ['a view', 'CREATE VIEW mine AS SELECT 1'],
    ['a temporary table', 'CREATE TEMPORARY TABLE mine (a UInt8)'],
    ['another account', 'EXECUTE AS operator SELECT 1'],
    ['a role', 'SET ROLE reads_raw_ids'],
    ['the removal of a table', 'DROP TABLE events'],
    ['the cancellation of other queries', "KILL QUERY WHERE user = 'operator'"],
    ['the definition of the dictionary', 'SHOW CREATE DICTIONARY identity_persons'],
    ['an entry of the dictionary', "SELECT dictGet('playline.identity_persons', 'person_key', toUInt64(1))"],
    ['the rows of the dictionary', "SELECT * FROM dictionary('playline.identity_persons')"],
    ['tables that match a pattern', "SELECT * FROM merge('playline', '^events$')"],
    ['a table at a server address', "SELECT * FROM remote('127.0.0.1', playline.events)"],
    ['a query plan', "SELECT * FROM viewExplain('EXPLAIN', '', (SELECT * FROM playline.events))"],
    ['a response from another site', "SELECT * FROM url('http://127.0.0.1:1/', 'LineAsString')"],
    ['a file as a table', "SELECT * FROM file('/etc/hostname', 'LineAsString')"],
    ['a file', "SELECT file('/etc/hostname')"],
  ])('with a statement that requests %s', async (_what, sql) => {
    expect([sql, (await query(sql)).ok]).toEqual([sql, false]);
  });

  it('with a setting in the URL', async () => {
    for (const search of ['&max_execution_time=60', '&max_rows_to_read=0', '&readonly=0', '&max_memory_usage=0'])
      expect([search, (await query('SELECT 1', search)).ok]).toEqual([search, false]);
  });
});

/** Runs for minutes. The engine checks limits and the connection after each block of half a second. */
const SLOW = 'SELECT count() FROM numbers(90000000) WHERE sleep(0.5) = 0';

/** Sends a slow query and disconnects. @returns the exception code in the query log */
async function readCodeAfterDisconnect(marker: string): Promise<string> {
  const isMarked = `user = 'portal' AND query LIKE '%${marker}%'`;
  const running = async () =>
    Number(await account.runAsOperator(`SELECT count() FROM system.processes WHERE ${isMarked}`));
  const stop = new AbortController();
  const rejected = expect(
    account.query('portal', `${SLOW} /* ${marker} */`, { signal: stop.signal }),
  ).rejects.toThrow();
  await until('the query runs', async () => (await running()) === 1);
  stop.abort();
  await rejected;
  await until('the query has ended', async () => (await running()) === 0);
  await account.runAsOperator('SYSTEM FLUSH LOGS query_log');
  const ended = `SELECT exception_code FROM system.query_log WHERE type != 'QueryStart' AND ${isMarked}`;
  return (await account.runAsOperator(ended)).trim();
}

describe.concurrent('a portal query', () => {
  it('is cancelled after five seconds', { timeout: 30_000 }, async () => {
    const { ok, text } = await query(SLOW);
    expect([ok, text]).toEqual([false, expect.stringMatching(/Timeout exceeded.*maximum: 5000/s)]);
  });

  it('is cancelled when the client disconnects', async () => {
    // On a busy machine, the time limit may cancel the query first.
    await until(
      'a disconnect cancels a query',
      async () => (await readCodeAfterDisconnect(randomUUID())) === CANCELLED,
    );
  });

  it('fails when it reads or returns too many rows', async () => {
    expect((await query('SELECT sum(number) FROM numbers(200000000)')).text).toContain('TOO_MANY_ROWS');
    expect((await query('SELECT number FROM numbers(30000)')).text).toContain('Limit for result exceeded');
  });
});
