import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AnalystsEngine, openAnalystsEngine } from './test/analysts-engine.ts';
import { argumentsOf as argumentsOfPortal, callOf } from './test/portal-rows.ts';
import { argumentsOf, DEMO, fillTwoEnvironments, OTHER, ofOther, RAW } from './test/two-environments.ts';

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

let engine: AnalystsEngine;
const names = async (sql: string) => (await engine.runAsOperator(sql)).split('\n').filter((name) => name !== '');
const portalViews = argumentsOfPortal('demo');
const read = (account: string, view: string, environment: typeof DEMO | typeof OTHER = DEMO) => {
  const ofPortal = portalViews[view];
  const source = ofPortal === undefined ? view + argumentsOf(view, environment) : callOf(view, ofPortal);
  return engine.query(account, `SELECT * FROM ${source} FORMAT JSONEachRow`);
};

beforeAll(async () => {
  engine = await openAnalystsEngine();
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
    if (granted === '*') expect(ofOther(other)).toBe(true);
    else expect([ofOther(own), ofOther(other)]).toEqual([false, false]);
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
