import { randomUUID } from 'node:crypto';
import { until } from '@playline/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openPortalAccount, type PortalAccount } from './test/portal-account.ts';
import { argumentsOf, callOf, DEMO, OTHER, ofOther } from './test/portal-rows.ts';
import { argumentsOf as argumentsOfAnalysts } from './test/two-environments.ts';

const START_MS = 120_000;
const VIEWS = Object.keys(argumentsOf(DEMO)).sort();
/** `QUERY_WAS_CANCELLED` in the log of the engine. */
const CANCELLED = '394';
/** The argument that selects the environment or project. */
const SCOPE = /^(environments?|project|contracts?)$/;
/** Values that would match more than one name as a pattern, a list or SQL. */
const ODD = ['%', '*', '', "x') OR ('1' = '1"];
const ODD_CONTRACTS = ['main *', 'main % ', 'main 0x'];
const ODD_IDS = ['demo%', 'game%', "demo-2' --", "' OR environment_id = 'demo-2"];
const [demo, other] = [argumentsOf(DEMO), argumentsOf(OTHER)];

let account: PortalAccount;
const names = async (sql: string) => (await account.runAsOperator(sql)).split('\n').filter((name) => name !== '');
const query = (sql: string, search = '') => account.query('portal', sql, { search });
const read = (source: string) => query(`SELECT * FROM ${source} FORMAT JSONEachRow`);

beforeAll(async () => {
  account = await openPortalAccount();
}, START_MS);
afterAll(() => account?.close(), START_MS);

// The tests change nothing, so they run concurrently on one engine.
describe.concurrent("the portal's account", () => {
  it('can read these views, and no other view, table or dictionary', async () => {
    const all = await names("SELECT name FROM system.tables WHERE database = 'playline' ORDER BY name");
    expect(all).toEqual(expect.arrayContaining([...VIEWS, 'identity_persons', 'events', 'audit_log', 'events_exact']));
    for (const name of all.filter((each) => !VIEWS.includes(each)))
      expect([name, (await read(name + argumentsOfAnalysts(name, 'demo-own'))).text]).toEqual([
        name,
        expect.stringContaining('Not enough privileges'),
      ]);
    expect((await query('SHOW TABLES')).text.trim().split('\n').sort()).toEqual(VIEWS);
  });

  it.each(VIEWS)(
    'reads from %s the requested environment, and nothing of another one with the same prefix',
    async (view) => {
      const [own, stray] = [await read(callOf(view, demo[view]!)), await read(callOf(view, other[view]!))];
      expect([own.ok, own.text === '', ofOther(own.text)]).toEqual([true, false, false]);
      expect([stray.ok, ofOther(stray.text)]).toEqual([true, true]);
    },
  );

  it.each(VIEWS)('gets an error from %s when any argument is missing', async (view) => {
    for (const sql of [view, `${view}()`]) expect([sql, (await read(sql)).ok]).toEqual([sql, false]);
    for (const [at, missing] of Object.keys(demo[view]!).entries()) {
      const { [missing]: _, ...left } = demo[view]!;
      const answer = await query(`SELECT ${['*', 'count()', '1'][at % 3]} FROM ${callOf(view, left)}`);
      expect([view, missing, answer.ok]).toEqual([view, missing, false]);
    }
  });

  it.each(VIEWS)('passes an argument of %s as one name, not as a pattern, a list or SQL', async (view) => {
    const [named, at] = Object.entries(demo[view]!).find(([name]) => SCOPE.test(name))!;
    for (const text of [...ODD, ...(named.startsWith('contract') ? ODD_CONTRACTS : ODD_IDS)]) {
      const literal = `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
      const value = at.startsWith('[') ? `[${literal}]` : literal;
      const answer = await read(callOf(view, { ...demo[view]!, [named]: value }));
      expect([text, answer]).toEqual([text, { ok: true, text: '' }]);
    }
  });

  it.each(VIEWS)('reads from %s nothing of another environment by its other arguments', async (view) => {
    const mixed = { ...other[view]! };
    for (const name of Object.keys(mixed).filter((each) => SCOPE.test(each))) mixed[name] = demo[view]![name]!;
    const { ok, text } = await read(callOf(view, mixed));
    expect([ok, ofOther(text)]).toEqual([true, false]);
  });
});

describe.concurrent("the portal's account cannot get around its views", () => {
  it('by a system table', async () => {
    for (const table of ['query_log', 'processes', 'parts', 'dictionaries', 'users'])
      expect((await query(`SELECT * FROM system.${table}`)).text).toMatch(/Not enough privileges|^$/);
  });

  // analysts.long.test.ts tries every function of the engine.
  it.each([
    ['a setting in a query', `SELECT 1 SETTINGS max_execution_time = 60`],
    ['a filter over columns below a view', `SELECT 1 SETTINGS additional_table_filters = {'events': '1'}`],
    ['a setting', 'SET max_execution_time = 60'],
    ['a row', "INSERT INTO audit_log (project_id) VALUES ('game')"],
    ['a view', 'CREATE VIEW mine AS SELECT 1'],
    ['a temporary table', 'CREATE TEMPORARY TABLE mine (a UInt8)'],
    ['another account', 'EXECUTE AS operator SELECT 1'],
    ['a role', 'SET ROLE reads_raw_ids'],
    ['a dropped table', 'DROP TABLE events'],
    ['the end of queries of others', "KILL QUERY WHERE user = 'operator'"],
    ['the text of the dictionary', 'SHOW CREATE DICTIONARY identity_persons'],
    ['an entry of the dictionary', "SELECT dictGet('playline.identity_persons', 'person_key', toUInt64(1))"],
    ['the rows of the dictionary', "SELECT * FROM dictionary('playline.identity_persons')"],
    ['tables by a pattern', "SELECT * FROM merge('playline', '^events$')"],
    ['a table by an address', "SELECT * FROM remote('127.0.0.1', playline.events)"],
    ['an explanation', "SELECT * FROM viewExplain('EXPLAIN', '', (SELECT * FROM playline.events))"],
    ['another site', "SELECT * FROM url('http://127.0.0.1:1/', 'LineAsString')"],
    ['a file as a table', "SELECT * FROM file('/etc/hostname', 'LineAsString')"],
    ['a file', "SELECT file('/etc/hostname')"],
  ])('by getting %s', async (_what, sql) => {
    expect([sql, (await query(sql)).ok]).toEqual([sql, false]);
  });

  it('by a setting in the URL', async () => {
    for (const search of ['&max_execution_time=60', '&max_rows_to_read=0', '&readonly=0', '&max_memory_usage=0'])
      expect([search, (await query('SELECT 1', search)).ok]).toEqual([search, false]);
  });
});

/** Takes minutes. The engine checks limits and its client after each block of half a second. */
const SLOW = 'SELECT count() FROM numbers(90000000) WHERE sleep(0.5) = 0';

/** Sends a slow query and disconnects. @returns the engine's code for the end of the query */
async function codeAfterDisconnect(mark: string): Promise<string> {
  const isMarked = `user = 'portal' AND query LIKE '%${mark}%'`;
  const running = async () =>
    Number(await account.runAsOperator(`SELECT count() FROM system.processes WHERE ${isMarked}`));
  const stop = new AbortController();
  const left = expect(account.query('portal', `${SLOW} /* ${mark} */`, { signal: stop.signal })).rejects.toThrow();
  await until('the query runs', async () => (await running()) === 1);
  stop.abort();
  await left;
  await until('the query has ended', async () => (await running()) === 0);
  await account.runAsOperator('SYSTEM FLUSH LOGS query_log');
  const ended = `SELECT exception_code FROM system.query_log WHERE type != 'QueryStart' AND ${isMarked}`;
  return (await account.runAsOperator(ended)).trim();
}

describe.concurrent('a query of the portal', () => {
  it('ends after five seconds at the latest', { timeout: 30_000 }, async () => {
    const { ok, text } = await query(SLOW);
    expect([ok, text]).toEqual([false, expect.stringMatching(/Timeout exceeded.*maximum: 5000/s)]);
  });

  it('ends when its client disconnects', async () => {
    // On a busy machine the time limit may end the query first.
    await until('a query ends by a disconnect', async () => (await codeAfterDisconnect(randomUUID())) === CANCELLED);
  });

  it('reads no more rows than its limit, and returns no more than a page needs', async () => {
    expect((await query('SELECT sum(number) FROM numbers(200000000)')).text).toContain('TOO_MANY_ROWS');
    expect((await query('SELECT number FROM numbers(30000)')).text).toContain('Limit for result exceeded');
  });
});
