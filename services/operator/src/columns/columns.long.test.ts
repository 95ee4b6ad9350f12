import { afterAll, beforeAll, expect, it } from 'vitest';
import { COLUMNS_MAX } from '../commands/columns.ts';
import { runMain } from '../test/run-main.ts';
import { parseColumn, toAddStatement } from './property-column.ts';
import { type ColumnsFixture, NOW, openColumnsFixture } from './test/columns-fixture.ts';

let fixture: ColumnsFixture;
beforeAll(async () => {
  fixture = await openColumnsFixture();
  for (const day of ['2026-05-01', '2026-06-01', '2026-07-01'])
    await fixture.put([{ environmentId: 'all', day, properties: '{"coins":5,"level":{"coins":6}}' }]);
});
afterAll(() => fixture.close());

it('the program adds, lists and drops property columns', async () => {
  const columns = (...args: string[]) => runMain(fixture.environment, ['columns', ...args]);
  const added = await columns('add', '--name', 'main', '--path', 'level.coins', '--type', 'Int64', '--default', '0');
  expect(added).toMatchObject({ code: 0, out: expect.stringContaining('level.coins as Int64, default "0"') });
  expect(await fixture.query('SELECT sum(property_main) FROM events_exact')).toBe('18');
  const listed = await columns('list');
  expect(listed.code).toBe(0);
  expect(listed.out).toMatch(/^property_main +level\.coins +Int64 +"0" +\d{4}-\d\d-\d\dT\S+Z +done +\d+ bytes/m);
  expect(await columns('drop', '--name', 'main', '--yes')).toMatchObject({ code: 0, out: 'property_main dropped\n' });
  expect(await columns('list')).toMatchObject({ code: 0, out: '', err: 'no property columns\n' });
});

it('columns list shows the definition, the creation time and the backfill progress of each column', async () => {
  const add = ['add', '--name', 'listed', '--path', 'coins', '--type', 'Int64'];
  const printed = { name: 'listed', column: 'property_listed', path: 'coins', type: 'Int64', default: null };
  const since = new Date(NOW).toISOString();
  await fixture.withoutMerges(async () => {
    await fixture.run(add, { stopAt: /^backfill: / });
    expect(await fixture.list()).toEqual([{ ...printed, since, ...parts(3, 3) }]);
  });
  expect(await fixture.run(add)).toMatchObject({
    code: 0,
    progress: expect.stringContaining('already exists: resuming its backfill'),
  });
  expect(await fixture.list()).toEqual([{ ...printed, since, ...parts(3, 0) }]);
  await fixture.drop('listed');
});

const parts = (all: number, toDo: number) => ({
  parts: all,
  partsToDo: toDo,
  bytesOnDisk: expect.any(Number),
  partsWithoutBytes: expect.any(Number),
});

it('columns add fails if a column with the same name has another path, type or default', async () => {
  await fixture.add('coins', 'Int64');
  const others = [
    ['--path', 'level.coins', '--type', 'Int64'],
    ['--path', 'coins', '--type', 'Float64'],
    ['--path', 'coins', '--type', 'Int64', '--default=0'],
  ];
  for (const args of others) {
    const { code, progress } = await fixture.run(['add', '--name', 'coins', ...args]);
    expect(code).toBe(1);
    expect(progress).toContain('property_coins already exists as coins as Int64, default NULL: choose');
  }
  expect(await fixture.list()).toMatchObject([{ name: 'coins', path: 'coins', type: 'Int64', default: null }]);
  await fixture.drop('coins');
});

it('columns list shows columns that were added manually, and columns drop can drop them', async () => {
  await fixture.query("ALTER TABLE events ADD COLUMN property_hand UInt8 COMMENT 'Property of events: {}'");
  expect(await fixture.list()).toMatchObject([{ name: 'hand', path: null, type: 'UInt8', since: null }]);
  const { code, progress } = await fixture.add('hand', 'Int64');
  expect([code, progress]).toEqual([1, expect.stringContaining('as UInt8, not added by this command')]);
  expect((await fixture.drop('hand')).code).toBe(0);
  expect(await fixture.list()).toEqual([]);
});

it('two concurrent commands add a property column only once', async () => {
  const results = await Promise.all([fixture.add('level', 'Int64'), fixture.add('level', 'Int64')]);
  expect(results.map(({ code }) => code)).toEqual([0, 0]);
  expect(await fixture.list()).toMatchObject([{ name: 'level', partsToDo: 0 }]);
  await fixture.drop('level');
});

it('columns drop drops a column only after confirmation', async () => {
  await fixture.add('kept', 'Int64');
  expect(await fixture.run(['drop', '--name', 'kept'])).toMatchObject({
    code: 2,
    progress: expect.stringContaining('No terminal is available for confirmation: use --yes'),
  });
  expect(await fixture.run(['drop', '--name', 'kept'], { answer: 'no' })).toMatchObject({ code: 1, results: [] });
  expect(await fixture.list()).toHaveLength(1);
  expect((await fixture.run(['drop', '--name', 'kept'], { answer: 'yes' })).code).toBe(0);
  expect(await fixture.run(['drop', '--name', 'kept', '--yes'])).toMatchObject({
    code: 1,
    progress: expect.stringContaining('column property_kept does not exist'),
  });
});

it('a column that is dropped and added with another type has the new type in all rows', async () => {
  await fixture.run(['add', '--name', 'again', '--path', 'coins', '--type', 'Int64']);
  await fixture.drop('again');
  await fixture.run(['add', '--name', 'again', '--path', 'level.coins', '--type', 'Float64', '--default=0']);
  expect(await fixture.query('SELECT sum(property_again), any(toTypeName(property_again)) FROM events_exact')).toBe(
    '18\tFloat64',
  );
  await fixture.drop('again');
});

it('columns add fails at the maximum number of property columns', async () => {
  const names = Array.from({ length: COLUMNS_MAX }, (_, index) => `property_n${index} UInt8 DEFAULT 0`);
  await fixture.query(`ALTER TABLE events ${names.map((name) => `ADD COLUMN ${name}`).join(', ')}`);
  const { code, progress } = await fixture.add('more', 'Int64');
  expect([code, progress]).toEqual([1, expect.stringContaining(`the limit of ${COLUMNS_MAX} property columns`)]);
  await fixture.query(`ALTER TABLE events ${names.map((_, index) => `DROP COLUMN property_n${index}`).join(', ')}`);
});

const VIEWS = ['events_exact', 'events_identified', 'analysis_events_raw', 'analysis_events'];
const columnsOf = async (view: string) => {
  const names = await fixture.query(`SELECT name FROM system.columns
    WHERE database = currentDatabase() AND table = '${view}' AND startsWith(name, 'property_') ORDER BY position`);
  return names === '' ? [] : names.split('\n');
};
/** Reads the definition of a view, except the column list and comments, which change. */
const definitionOf = (view: string) =>
  fixture.query(`SELECT as_select, comment, definer, extract(create_table_query, '[)] (?:DEFINER = \\\\w+ )?(SQL SECURITY [A-Z]+)')
    FROM system.tables WHERE database = currentDatabase() AND name = '${view}'`);

it('the views of events include a column during its backfill, and no longer include a dropped column', async () => {
  await fixture.withoutMerges(async () => {
    const add = ['add', '--name', 'coins', '--path', 'coins', '--type', 'Int64'];
    expect((await fixture.run(add, { stopAt: /^backfill: / })).code).toBe(1);
    for (const view of VIEWS) {
      expect([view, await columnsOf(view)]).toEqual([view, ['property_coins']]);
      expect(await fixture.query(`SELECT DISTINCT property_coins FROM ${view}`)).toBe('5');
    }
  });
  expect((await fixture.drop('coins')).code).toBe(0);
  for (const view of VIEWS) expect([view, await columnsOf(view)]).toEqual([view, []]);
});

it('adding a column does not change the query, comment, definer or column comments of a view', async () => {
  await fixture.query(`CREATE VIEW custom_product (event_name String COMMENT 'It''s "SQL SECURITY NONE" (\`b\`)', property_none UInt8)
    SQL SECURITY INVOKER AS SELECT event_name, 1::UInt8 AS property_none, COLUMNS('^property_[a-m]') FROM analysis_events
    COMMENT 'It''s mine'`);
  const views = [...VIEWS, 'custom_product'];
  const before = await Promise.all(views.map(definitionOf));
  expect(before[0]).toMatch(/\tviews\tSQL SECURITY DEFINER$/);
  expect(before[4]).toMatch(/\tIt\\'s mine\t\tSQL SECURITY INVOKER$/);
  await fixture.add('coins', 'Int64');
  expect(await Promise.all(views.map(definitionOf))).toEqual(before);
  expect(await columnsOf('custom_product')).toEqual(['property_none', 'property_coins']);
  await fixture.drop('coins');
  expect(await Promise.all(views.map(definitionOf))).toEqual(before);
  const comment = "SELECT comment FROM system.columns WHERE table = 'custom_product' AND name = 'event_name'";
  expect(await fixture.query(comment)).toContain('(`b`)');
  await fixture.query('DROP VIEW custom_product');
});

it('parameterised views include new columns and exclude dropped columns without being recreated', async () => {
  await fixture.query(`CREATE VIEW by_name AS SELECT * FROM analysis_events WHERE event_name = {name: String}`);
  const created = () => fixture.query("SELECT uuid FROM system.tables WHERE name = 'by_name'");
  const before = await created();
  await fixture.add('coins', 'Int64');
  expect(await fixture.query("SELECT DISTINCT property_coins FROM by_name(name = 'win')")).toBe('5');
  await fixture.drop('coins');
  expect(await fixture.query("SELECT count() FROM (SELECT * FROM by_name(name = 'win'))")).toBe('3');
  expect(await created()).toBe(before);
  await fixture.query('DROP VIEW by_name');
});

it('queries of the views of events succeed while columns are added and dropped', async () => {
  const [faults, responses] = [new Set<string>(), new Map<string, number>()];
  const stop = new AbortController();
  const reader = async (view: string) => {
    while (!stop.signal.aborted) {
      await fixture.query(`SELECT * FROM ${view} FORMAT Null`).catch((fault) => faults.add(String(fault)));
      responses.set(view, (responses.get(view) ?? 0) + 1);
    }
  };
  const readers = VIEWS.map(reader);
  for (let round = 0; round < 2; round++) {
    expect((await fixture.add('coins', 'Int64')).code).toBe(0);
    expect((await fixture.drop('coins')).code).toBe(0);
  }
  stop.abort();
  await Promise.all(readers);
  expect([...faults]).toEqual([]);
  expect(responses.size).toBe(VIEWS.length);
});

it('columns drop fails while a custom view uses the column', async () => {
  await fixture.add('coins', 'Int64');
  await fixture.query('CREATE VIEW custom_coins AS SELECT max(property_coins) AS most FROM analysis_events');
  const { code, progress } = await fixture.drop('coins');
  expect([code, progress]).toEqual([
    1,
    expect.stringContaining('these views depend on property_coins: custom_coins. Change or drop'),
  ]);
  for (const view of VIEWS) expect(await columnsOf(view)).toEqual(['property_coins']);
  await fixture.query('DROP VIEW custom_coins');
  expect((await fixture.drop('coins')).code).toBe(0);
});

it('columns add reports custom views that are already broken, and does not change them', async () => {
  await fixture.query('CREATE TABLE gone (property_a UInt8) ENGINE = Memory');
  await fixture.query('CREATE VIEW custom_gone AS SELECT * FROM gone');
  await fixture.query('DROP TABLE gone SYNC');
  const { code, progress } = await fixture.add('coins', 'Int64');
  expect([code, progress]).toEqual([0, expect.stringContaining('view custom_gone was already broken')]);
  await fixture.query('DROP VIEW custom_gone');
  await fixture.drop('coins');
});

it('a repeated columns command adds columns to views that a killed command has not changed', async () => {
  await fixture.query('ALTER TABLE events ADD COLUMN property_half UInt8');
  await fixture.add('coins', 'Int64');
  for (const view of VIEWS) expect(await columnsOf(view)).toEqual(['property_half', 'property_coins']);
  for (const name of ['half', 'coins']) await fixture.drop(name);
});

/** JSON values, and the value that a column of each type contains; for types not listed, the value is invalid. */
const VALUES: readonly { json: string | null; byType?: Readonly<Record<string, string>> }[] = [
  { json: '5', byType: { Int64: '5', Float64: '5' } },
  { json: '5.0', byType: { Int64: '5', Float64: '5' } },
  { json: '-7.25', byType: { Float64: '-7.25' } },
  { json: '1e3', byType: { Int64: '1000', Float64: '1000' } },
  { json: '9223372036854775807', byType: { Int64: '9223372036854775807', Float64: '9223372036854776000' } },
  { json: '9223372036854775808', byType: { Float64: '9223372036854776000' } },
  { json: '"5"', byType: { String: '5' } },
  { json: '"a \\"b\\" \\u00e9 🎮"', byType: { String: 'a "b" é 🎮' } },
  { json: '""', byType: { String: '' } },
  { json: 'true', byType: { Bool: 'true' } },
  { json: 'false', byType: { Bool: 'false' } },
  { json: 'null' },
  { json: '[5]' },
  { json: '{"v":5}' },
  { json: '"2026-01-02T03:04:05.678Z"', byType: time('2026-01-02T03:04:05.678Z', '2026-01-02 03:04:05.678') },
  { json: '"2026-01-02T03:04:05+02:00"', byType: time('2026-01-02T03:04:05+02:00', '2026-01-02 01:04:05.000') },
  { json: '"2026-01-02"', byType: time('2026-01-02', '2026-01-02 00:00:00.000') },
  { json: '"2026-13-45T00:00:00Z"', byType: { String: '2026-13-45T00:00:00Z' } },
  { json: '"12"', byType: { String: '12' } },
  { json: null },
];

function time(text: string, stored: string) {
  return { String: text, DateTime: stored };
}

/** Columns with their type, the matching entry of `byType`, a default, and the default as queries return it. */
const COLUMNS = [
  { name: 'i', type: 'Int64', reading: 'Int64', fallback: '-9', shown: '-9' },
  { name: 'f', type: 'Float64', reading: 'Float64', fallback: '0.5', shown: '0.5' },
  { name: 's', type: 'String', reading: 'String', fallback: "it's \\ none", shown: "it's \\ none" },
  { name: 'l', type: 'LowCardinality(String)', reading: 'String', fallback: '', shown: '' },
  { name: 'b', type: 'Bool', reading: 'Bool', fallback: 'false', shown: 'false' },
  { name: 't', type: 'DateTime', reading: 'DateTime', fallback: '2020-01-01', shown: '2020-01-01 00:00:00.000' },
] as const;

/** Reads all values of a column, in event order; null for NULL. */
const read = async (column: string, environmentId: string) => {
  const result = await fixture.query(`SELECT groupArray([toString(isNull(${column})), ifNull(toString(${column}), '')])
    FROM (SELECT ${column} FROM events WHERE environment_id = '${environmentId}' ORDER BY event_name)
    FORMAT JSONCompactEachRow`);
  const [values] = JSON.parse(result) as [[string, string][]];
  return values.map(([isNull, value]) => (isNull === '1' ? null : value));
};
const expected = (reading: string, none: string | null) => VALUES.map(({ byType }) => byType?.[reading] ?? none);
const putValues = (environmentId: string) =>
  fixture.put(
    VALUES.map(({ json }, index) => ({
      environmentId,
      name: `event ${String(index).padStart(2, '0')}`,
      properties: json === null ? (index % 2 === 0 ? '' : '{"other":1}') : `{"other":{"v":0},"deep":{"v":${json}}}`,
    })),
  );

it('a column contains values of its type, otherwise NULL or the default, before and after a backfill', async () => {
  await putValues('before');
  const names = COLUMNS.flatMap(({ name }) => [`${name}_null`, `${name}_default`]);
  for (const { name, type, fallback } of COLUMNS) {
    const column = { path: 'deep.v', type, since: '' };
    await fixture.query(toAddStatement({ ...column, name: `${name}_null`, fallback: null }));
    const { fallback: parsed } = parseColumn({ name, path: 'deep.v', type, default: fallback });
    await fixture.query(toAddStatement({ ...column, name: `${name}_default`, fallback: parsed }));
  }
  const check = async (environmentId: string) => {
    for (const { name, reading, shown } of COLUMNS) {
      expect(await read(`property_${name}_null`, environmentId)).toEqual(expected(reading, null));
      expect(await read(`property_${name}_default`, environmentId)).toEqual(expected(reading, shown));
    }
  };
  await check('before');
  await putValues('after');
  await check('after');
  const materialized = names.map((name) => `MATERIALIZE COLUMN property_${name}`).join(', ');
  await fixture.query(`ALTER TABLE events ${materialized} SETTINGS mutations_sync = 2`);
  await check('before');
  await fixture.query(`ALTER TABLE events ${names.map((name) => `DROP COLUMN property_${name}`).join(', ')}`);
});

it('a property path can contain dots, quotes, backslashes and non-Latin characters', async () => {
  const names = ['a.b', "it's", 'back\\slash', 'レベル', '"', '0'];
  const properties = JSON.stringify(names.reduce<unknown>((inner, name) => ({ [name]: inner }), 7));
  await fixture.put([{ environmentId: 'odd', properties }]);
  const path = names
    .map((name) => name.replaceAll('\\', '\\\\').replaceAll('.', '\\.'))
    .toReversed()
    .join('.');
  expect((await fixture.run(['add', '--name', 'odd', '--path', path, '--type', 'Int64'])).code).toBe(0);
  expect(await read('property_odd', 'odd')).toEqual(['7']);
  expect(await fixture.list()).toContainEqual(expect.objectContaining({ name: 'odd', path }));
  await fixture.drop('odd');
});
