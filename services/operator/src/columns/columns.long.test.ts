import { afterAll, beforeAll, expect, it } from 'vitest';
import { COLUMNS_MAX } from '../commands/columns.ts';
import { runMain } from '../test/run-main.ts';
import { type ColumnsFixture, NOW, openColumnsFixture } from './test/columns-fixture.ts';

let fixture: ColumnsFixture;
beforeAll(async () => {
  fixture = await openColumnsFixture();
  for (const day of ['2026-05-01', '2026-06-01', '2026-07-01'])
    await fixture.put([{ environmentId: 'all', day, properties: '{"coins":5,"level":{"coins":6}}' }]);
});
afterAll(() => fixture.close());

it('columns of properties are added, listed and dropped by the program as a deployment runs it', async () => {
  const columns = (...args: string[]) => runMain(fixture.environment, ['columns', ...args]);
  const added = await columns('add', '--name', 'main', '--path', 'level.coins', '--type', 'Int64', '--default', '0');
  expect(added).toMatchObject({ code: 0, out: expect.stringContaining('property_main: level.coins as Int64, "0"') });
  expect(await fixture.query('SELECT sum(property_main) FROM events_exact')).toBe('18');
  const listed = await columns('list');
  expect(listed.code).toBe(0);
  expect(listed.out).toMatch(/^property_main +level\.coins +Int64 +"0" +\d{4}-\d\d-\d\dT\S+Z +done +\d+ bytes/m);
  expect(await columns('drop', '--name', 'main', '--yes')).toMatchObject({
    code: 0,
    out: 'property_main is dropped\n',
  });
  expect(await columns('list')).toMatchObject({ code: 0, out: '', err: 'no property has a column\n' });
});

it('columns of properties are listed with what they are, since when, and how far the backfill has come', async () => {
  const add = ['add', '--name', 'listed', '--path', 'coins', '--type', 'Int64'];
  const printed = { name: 'listed', column: 'property_listed', path: 'coins', type: 'Int64', default: null };
  const since = new Date(NOW).toISOString();
  await fixture.whileNothingIsWritten(async () => {
    await fixture.run(add, { stopAt: /^backfill: / });
    expect(await fixture.list()).toEqual([{ ...printed, since, ...parts(3, 3) }]);
  });
  expect(await fixture.run(add)).toMatchObject({
    code: 0,
    progress: expect.stringContaining('already exists: resuming unfinished work'),
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

it('columns of properties are refused, without any change, under an existing name with another path, type or default', async () => {
  await fixture.add('coins', 'Int64');
  const others = [
    ['--path', 'level.coins', '--type', 'Int64'],
    ['--path', 'coins', '--type', 'Float64'],
    ['--path', 'coins', '--type', 'Int64', '--default=0'],
  ];
  for (const args of others) {
    const { code, progress } = await fixture.run(['add', '--name', 'coins', ...args]);
    expect(code).toBe(1);
    expect(progress).toContain('property_coins already exists as coins as Int64, NULL where there is none: choose');
  }
  expect(await fixture.list()).toMatchObject([{ name: 'coins', path: 'coins', type: 'Int64', default: null }]);
  await fixture.drop('coins');
});

it('columns of properties added by hand are listed as such, and can be dropped', async () => {
  await fixture.query("ALTER TABLE events ADD COLUMN property_hand UInt8 COMMENT 'Property of events: {}'");
  expect(await fixture.list()).toMatchObject([{ name: 'hand', path: null, type: 'UInt8', since: null }]);
  const { code, progress } = await fixture.add('hand', 'Int64');
  expect([code, progress]).toEqual([1, expect.stringContaining('as UInt8, added by other means')]);
  expect((await fixture.drop('hand')).code).toBe(0);
  expect(await fixture.list()).toEqual([]);
});

it('columns of properties are added once when two people do it at the same time', async () => {
  const both = await Promise.all([fixture.add('level', 'Int64'), fixture.add('level', 'Int64')]);
  expect(both.map(({ code }) => code)).toEqual([0, 0]);
  expect(await fixture.list()).toMatchObject([{ name: 'level', partsToDo: 0 }]);
  await fixture.drop('level');
});

it('columns of properties are dropped only after confirmation', async () => {
  await fixture.add('kept', 'Int64');
  expect(await fixture.run(['drop', '--name', 'kept'])).toMatchObject({
    code: 2,
    progress: expect.stringContaining('No terminal to confirm on: use --yes'),
  });
  expect(await fixture.run(['drop', '--name', 'kept'], { answer: 'no' })).toMatchObject({ code: 1, results: [] });
  expect(await fixture.list()).toHaveLength(1);
  expect((await fixture.run(['drop', '--name', 'kept'], { answer: 'yes' })).code).toBe(0);
  expect(await fixture.run(['drop', '--name', 'kept', '--yes'])).toMatchObject({
    code: 1,
    progress: expect.stringContaining('there is no property_kept'),
  });
});

it('columns of properties get the new type for every row when they are dropped and added with another one', async () => {
  await fixture.run(['add', '--name', 'again', '--path', 'coins', '--type', 'Int64']);
  await fixture.drop('again');
  await fixture.run(['add', '--name', 'again', '--path', 'level.coins', '--type', 'Float64', '--default=0']);
  expect(await fixture.query('SELECT sum(property_again), any(toTypeName(property_again)) FROM events_exact')).toBe(
    '18\tFloat64',
  );
  await fixture.drop('again');
});

it('columns of properties are limited in number to what an insert can bear', async () => {
  const names = Array.from({ length: COLUMNS_MAX }, (_, index) => `property_n${index} UInt8 DEFAULT 0`);
  await fixture.query(`ALTER TABLE events ${names.map((name) => `ADD COLUMN ${name}`).join(', ')}`);
  const { code, progress } = await fixture.add('more', 'Int64');
  expect([code, progress]).toEqual([1, expect.stringContaining(`there are ${COLUMNS_MAX} property columns already`)]);
  await fixture.query(`ALTER TABLE events ${names.map((_, index) => `DROP COLUMN property_n${index}`).join(', ')}`);
});
