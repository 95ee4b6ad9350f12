import { createLogger, createMetrics } from '@playline/runtime';
import { createQueryRows, readRows } from '@playline/stores';
import { until } from '@playline/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AnalystsEngine, openAnalystsEngine } from '../infra/clickhouse/test/analysts-engine.ts';
import { queryNatively } from '../infra/clickhouse/test/native-client.ts';
import { toArguments as argumentsOfPortal, toCall } from '../infra/clickhouse/test/portal-rows.ts';
import {
  toArguments,
  DEMO,
  fillTwoEnvironments,
  OTHER,
  isFromOther,
  RAW,
} from '../infra/clickhouse/test/two-environments.ts';
import { freePorts } from '../infra/local/ports.ts';
import { openQueryLimits } from '../services/event-writer/src/query-limits.ts';
import { createPortalShares } from '../services/portal/src/frame/shares.ts';

const START_MS = 120_000;
/** Views for accounts without raw ids, and further ones for accounts with raw ids. A new view must be added here. */
const VIEWS = [
  ...['analysis_consents', 'analysis_consents_current', 'analysis_events', 'analysis_rejections', 'analysis_tests'],
  ...['event_catalogue', 'person_days', 'persons', 'sessions'],
];
const RAW_VIEWS = [
  'analysis_events_raw',
  'events_exact',
  'events_identified',
  'person_timeline',
  'persons_raw',
  'property_catalogue',
];
/** Accounts with their granted environments and their views. */
const ACCOUNTS = [
  { account: 'analyst_1', granted: DEMO, views: VIEWS },
  { account: 'analyst_2', granted: null, views: VIEWS },
  { account: 'analyst_raw_1', granted: DEMO, views: [...VIEWS, ...RAW_VIEWS] },
  { account: 'analyst', granted: '*', views: [...VIEWS, ...RAW_VIEWS] },
] as const;

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
const names = async (sql: string) => (await engine.runAsOperator(sql)).split('\n').filter((name) => name !== '');
const portalViews = argumentsOfPortal('demo');
const read = (account: string, view: string, environment: typeof DEMO | typeof OTHER = DEMO) => {
  const ofPortal = portalViews[view];
  const source = ofPortal === undefined ? view + toArguments(view, environment) : toCall(view, ofPortal);
  return engine.query(account, `SELECT * FROM ${source} FORMAT JSONEachRow`);
};

beforeAll(async () => {
  [nativePort = 0] = await freePorts(1);
  engine = await openAnalystsEngine({ nativePort });
  await fillTwoEnvironments(engine);
  for (const { account, granted } of ACCOUNTS) if (granted === DEMO) await engine.grant(account, DEMO);
}, START_MS);
afterAll(() => engine?.close(), START_MS);

describe('row policies', () => {
  it('exist on every table that has an environment', async () => {
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

  it('identify an account by its login, because over the native protocol a client can claim any current user', async () => {
    const policies = await engine.runAsOperator(
      "SELECT select_filter FROM system.row_policies UNION ALL SELECT as_select FROM system.tables WHERE name = 'readable_environments'",
    );
    expect(policies).toContain('authenticatedUser()');
    // Excludes the condition for an empty login, which no client can claim.
    const others = policies.replaceAll(/\(authenticatedUser\(\) = \\'\\'\) AND \(currentUser\(\) = \\'views\\'\)/g, '');
    expect(others).not.toMatch(/current_?user|\buser\(|initial/i);
  });

  it('do not filter the dictionary of persons, also when a query of an account without grants loads it', async () => {
    for (const verb of ['DETACH', 'ATTACH']) await engine.runAsOperator(`${verb} DICTIONARY identity_persons`);
    expect((await engine.query('analyst_2', 'SELECT count() FROM persons')).text).toBe('0\n');
    // One row for each environment, and one with the load time.
    expect(
      await engine.runAsOperator("SELECT element_count FROM system.dictionaries WHERE name = 'identity_persons'"),
    ).toBe('3\n');
  });

  it('leave services and the operator every row', async () => {
    for (const account of ['operator', 'writer'])
      expect((await engine.query(account, 'SELECT count() FROM events_identified')).text).toBe('4\n');
  });
});

describe.each(ACCOUNTS)('the account $account', ({ account, granted, views }) => {
  it('can read these views, and no other view, table or dictionary', async () => {
    const all = await names("SELECT name FROM system.tables WHERE database = 'playline' ORDER BY name");
    expect(all).toEqual(expect.arrayContaining([...views, 'identity_persons', 'events', 'settled_persons']));
    const readable: string[] = [];
    for (const name of all) {
      const { ok, text } = await read(account, name);
      if (ok) readable.push(name);
      else expect([name, text]).toEqual([name, expect.stringContaining('Not enough privileges')]);
    }
    expect(readable).toEqual([...views].sort());
    expect((await engine.query(account, 'SHOW TABLES')).text.trim().split('\n').sort()).toEqual([...views].sort());
  });

  it.each(views)('reads from %s the granted environments only', async (view) => {
    const own = (await read(account, view)).text;
    const other = (await read(account, view, OTHER)).text;
    if (granted === null) expect([own, other]).toEqual(['', '']);
    else expect(own).not.toBe('');
    if (granted === '*') expect(isFromOther(other)).toBe(true);
    else expect([isFromOther(own), isFromOther(other)]).toEqual([false, false]);
  });
});

describe('an account without raw ids', () => {
  it.each(VIEWS)('gets no raw id from %s in any field', async (view) => {
    const { ok, text } = await read('analyst_1', view);
    expect([ok, text.toLowerCase().includes(RAW)]).toEqual([true, false]);
  });

  it('is compared with views that have these ids', async () => {
    for (const view of RAW_VIEWS) expect((await read('analyst_raw_1', view)).text).toContain(RAW);
  });
});

describe('a grant to an account', () => {
  it('takes effect at the next query, even an identical one', async () => {
    const sql = 'SELECT count() FROM analysis_events';
    const counted = async () => (await engine.query('analyst_3', sql)).text;
    expect(await counted()).toBe('0\n');
    await engine.grant('analyst_3', DEMO);
    expect(await counted()).toBe('1\n');
    await engine.grant('analyst_3', OTHER);
    expect(await counted()).toBe('2\n');
    await engine.grant('analyst_3', DEMO, false);
    expect((await engine.query('analyst_3', 'SELECT DISTINCT environment_id FROM analysis_events')).text).toBe(
      `${OTHER}\n`,
    );
    await engine.grant('analyst_3', OTHER, false);
    expect(await counted()).toBe('0\n');
    await engine.grant('analyst_3', '*');
    expect(await counted()).toBe('2\n');
    await engine.grant('analyst_3', '*', false);
    expect(await counted()).toBe('0\n');
  });
});

describe('with the check of running queries', () => {
  let limits: { close(): Promise<void> | void };
  const metrics = createMetrics('event-writer');
  const logged: string[] = [];
  beforeAll(() => {
    const to = { write: (line: string) => logged.push(line) };
    const logger = createLogger({ service: 'event-writer', level: 'warn' }, to);
    limits = openQueryLimits({ account: engine.accountOf('writer'), logger, metrics });
  });
  afterAll(() => limits?.close());

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
      expect((await engine.query('analyst_7', `${SLOW} SETTINGS max_memory_usage = DEFAULT`, id)).text).toMatch(
        STOPPED,
      );
    });

    it('holds for a client of the native protocol', { timeout: 30_000 }, async () => {
      const queryAsNative = (sql: string) => queryNatively({ ...engine.accountOf('analyst_6'), port: nativePort, sql });
      expect(await queryAsNative(`${SLOW} SETTINGS max_execution_time = DEFAULT`)).toMatch(/Query was cancelled/);
      const rows = 'SELECT number FROM numbers(1500000) SETTINGS max_result_rows = DEFAULT';
      // Rows of one query may be in two intervals of the quota.
      const answers = [await queryAsNative(rows), await queryAsNative(rows), await queryAsNative(rows)];
      expect(answers.some((answer) => /Quota for user|Query was cancelled/.test(answer))).toBe(true);
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
});
