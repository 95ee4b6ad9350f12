import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ColumnsFixture, openColumnsFixture } from './test/columns-fixture.ts';

const VIEWS = ['events_exact', 'events_identified', 'analysis_events_raw', 'analysis_events'];

let fixture: ColumnsFixture;
beforeAll(async () => {
  fixture = await openColumnsFixture();
  await fixture.put([{ environmentId: 'all', properties: '{"coins":5}' }]);
});
afterAll(() => fixture.close());

const columnsOf = async (view: string) => {
  const names = await fixture.query(`SELECT name FROM system.columns
    WHERE database = currentDatabase() AND table = '${view}' AND startsWith(name, 'property_') ORDER BY position`);
  return names === '' ? [] : names.split('\n');
};
/** The definition of a view without its column list and comments, which change. */
const definitionOf = (view: string) =>
  fixture.query(`SELECT as_select, comment, definer, extract(create_table_query, '[)] (?:DEFINER = \\\\w+ )?(SQL SECURITY [A-Z]+)')
    FROM system.tables WHERE database = currentDatabase() AND name = '${view}'`);

it('the views over events show a column while its backfill still runs, and lose it with the drop', async () => {
  await fixture.whileNothingIsWritten(async () => {
    const add = ['add', '--name', 'coins', '--path', 'coins', '--type', 'Int64'];
    expect((await fixture.run(add, { stopAt: /^backfill: / })).code).toBe(1);
    for (const view of VIEWS) {
      expect([view, await columnsOf(view)]).toEqual([view, ['property_coins']]);
      expect(await fixture.query(`SELECT property_coins FROM ${view}`)).toBe('5');
    }
  });
  expect((await fixture.drop('coins')).code).toBe(0);
  for (const view of VIEWS) expect([view, await columnsOf(view)]).toEqual([view, []]);
});

it('the views over events keep their text, comment, definer rights, and the comments of their columns', async () => {
  await fixture.query(`CREATE VIEW of_product (event_name String COMMENT 'It''s "SQL SECURITY NONE" (\`b\`)', property_none UInt8)
    SQL SECURITY INVOKER AS SELECT event_name, 1::UInt8 AS property_none, COLUMNS('^property_[a-m]') FROM analysis_events
    COMMENT 'It''s mine'`);
  const views = [...VIEWS, 'of_product'];
  const before = await Promise.all(views.map(definitionOf));
  expect(before[0]).toMatch(/\tviews\tSQL SECURITY DEFINER$/);
  expect(before[4]).toMatch(/\tIt\\'s mine\t\tSQL SECURITY INVOKER$/);
  await fixture.add('coins', 'Int64');
  expect(await Promise.all(views.map(definitionOf))).toEqual(before);
  expect(await columnsOf('of_product')).toEqual(['property_none', 'property_coins']);
  await fixture.drop('coins');
  expect(await Promise.all(views.map(definitionOf))).toEqual(before);
  const comment = "SELECT comment FROM system.columns WHERE table = 'of_product' AND name = 'event_name'";
  expect(await fixture.query(comment)).toContain('(`b`)');
  await fixture.query('DROP VIEW of_product');
});

it('views with parameters show a column, and lose it, although they are not recreated', async () => {
  await fixture.query(`CREATE VIEW by_name AS SELECT * FROM analysis_events WHERE event_name = {name: String}`);
  const created = () => fixture.query("SELECT uuid FROM system.tables WHERE name = 'by_name'");
  const before = await created();
  await fixture.add('coins', 'Int64');
  expect(await fixture.query("SELECT property_coins FROM by_name(name = 'win')")).toBe('5');
  await fixture.drop('coins');
  expect(await fixture.query("SELECT count() FROM (SELECT * FROM by_name(name = 'win'))")).toBe('1');
  expect(await created()).toBe(before);
  await fixture.query('DROP VIEW by_name');
});

it('the views over events answer queries for all columns while columns are added and dropped', async () => {
  const [faults, answers] = [new Set<string>(), new Map<string, number>()];
  const stop = new AbortController();
  const reader = async (view: string) => {
    while (!stop.signal.aborted) {
      await fixture.query(`SELECT * FROM ${view} FORMAT Null`).catch((fault) => faults.add(String(fault)));
      answers.set(view, (answers.get(view) ?? 0) + 1);
    }
  };
  const readers = VIEWS.map(reader);
  for (let time = 0; time < 2; time++) {
    expect((await fixture.add('coins', 'Int64')).code).toBe(0);
    expect((await fixture.drop('coins')).code).toBe(0);
  }
  stop.abort();
  await Promise.all(readers);
  expect([...faults]).toEqual([]);
  expect(answers.size).toBe(VIEWS.length);
});

it('views created by others that name a column keep it from being dropped until they are changed', async () => {
  await fixture.add('coins', 'Int64');
  await fixture.query('CREATE VIEW of_coins AS SELECT max(property_coins) AS most FROM analysis_events');
  const { code, progress } = await fixture.drop('coins');
  expect([code, progress]).toEqual([
    1,
    expect.stringContaining('of_coins would fail without property_coins: change or drop'),
  ]);
  for (const view of VIEWS) expect(await columnsOf(view)).toEqual(['property_coins']);
  await fixture.query('DROP VIEW of_coins');
  expect((await fixture.drop('coins')).code).toBe(0);
});

it('views created by others that fail on their own are named and left as they are', async () => {
  await fixture.query('CREATE TABLE gone (property_a UInt8) ENGINE = Memory');
  await fixture.query('CREATE VIEW of_gone AS SELECT * FROM gone');
  await fixture.query('DROP TABLE gone SYNC');
  const { code, progress } = await fixture.add('coins', 'Int64');
  expect([code, progress]).toEqual([0, expect.stringContaining('view of_gone fails already')]);
  await fixture.query('DROP VIEW of_gone');
  await fixture.drop('coins');
});

it('views that lack a column because the command was killed get it when the command is repeated', async () => {
  await fixture.query('ALTER TABLE events ADD COLUMN property_half UInt8');
  await fixture.add('coins', 'Int64');
  for (const view of VIEWS) expect(await columnsOf(view)).toEqual(['property_half', 'property_coins']);
  for (const name of ['half', 'coins']) await fixture.drop(name);
});
