import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { openErasureRows } from '@playline/erasure/clickhouse';
import { until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ColumnsFixture, openColumnsFixture } from './test/columns-fixture.ts';

const COINS = ['add', '--name', 'coins', '--path', 'coins', '--type', 'Int64'];
const MONTHS = ['2026-03-01', '2026-04-01', '2026-05-01', '2026-06-01'];

let fixture: ColumnsFixture;
beforeAll(async () => {
  fixture = await openColumnsFixture();
  for (const day of MONTHS) await fixture.put(many('all', day));
});
afterAll(() => fixture.close());

const many = (environmentId: string, day: string) =>
  Array.from({ length: 50 }, (_, index) => ({ environmentId, day, properties: `{"coins":${index}}` }));
const sum = () => fixture.query("SELECT sum(property_coins) FROM events_exact WHERE environment_id = 'all'");
const written = () =>
  fixture.query(`SELECT command FROM system.mutations
    WHERE database = currentDatabase() AND command LIKE '%MATERIALIZE COLUMN%' AND NOT is_killed ORDER BY create_time, mutation_id`);
const current = () =>
  fixture.query(
    'SELECT command FROM system.mutations WHERE database = currentDatabase() AND NOT is_done FORMAT TSVRaw',
  );
const unfinished = async () => (await current()).split('\n').filter((command) => command !== '').length;

it('the column backfill resumes after the command was killed, and requests no month twice', async () => {
  await fixture.withoutMerges(async () => {
    const child = fixture.start(...COINS);
    await until('the newest month is requested', async () => (await written()).includes('20260601'));
    const exit = once(child, 'exit');
    child.kill('SIGKILL');
    await exit;
    expect(await sum()).toBe(String(MONTHS.length * 1225));
    await fixture.put(many('all', '2026-07-01'));
    expect(await sum()).toBe(String((MONTHS.length + 1) * 1225));
  });
  const { code, progress } = await fixture.run(COINS);
  expect(code).toBe(0);
  expect(progress).toMatch(/backfill: \d of 5 parts have the column; writing 20260[345]01/);
  // One mutation per existing month, and none for the month that was inserted after the column was added.
  expect([...(await written()).matchAll(/\d{8}/g)].map(String).sort()).toEqual(
    MONTHS.map((day) => day.replaceAll('-', '')),
  );
  expect(await sum()).toBe(String((MONTHS.length + 1) * 1225));
  await fixture.drop('coins');
});

it('the column backfill completes even if an insert that started before the column existed adds parts', async () => {
  const lateInsert =
    fixture.query(`INSERT INTO events (environment_id, type, event_name, event_time, received_at, message_id, properties, test)
    SELECT 'late', 'track', 'win', '2026-07-01 10:00:00', now64(3), generateUUIDv4(), '{"coins":1}', sleepEachRow(0.2) = 1
    FROM numbers(10) SETTINGS max_block_size = 10`);
  await until('the insert is running', async () =>
    (await fixture.query('SELECT query FROM system.processes')).includes('sleepEachRow'),
  );
  expect((await fixture.run(COINS)).code).toBe(0);
  await lateInsert;
  expect(await fixture.query("SELECT sum(property_coins) FROM events WHERE environment_id = 'late'")).toBe('10');
  expect((await fixture.run(COINS)).code).toBe(0);
  expect(await fixture.list()).toMatchObject([{ name: 'coins', partsToDo: 0 }]);
  await fixture.drop('coins');
});

it('a person can be erased from events and from the column during the column backfill', async () => {
  const [environment, key] = [`test-${randomUUID()}`, randomBytes(16)];
  const hex = key.toString('hex');
  await fixture.put([{ environmentId: environment, properties: '{"coins":1}' }]);
  const target = { ...toTarget(fixture), mutationDeadlineMs: 60_000 };
  const rows = openErasureRows(target);
  const batch = randomBytes(16);
  try {
    await fixture.query(`INSERT INTO events (environment_id, type, event_name, event_time, received_at, message_id, identity_key, properties, test)
      SELECT '${environment}', 'track', 'win', '2026-06-01 10:00:00', '2026-06-01 10:00:00', generateUUIDv4(), unhex('${hex}'), '{"coins":9}', false FROM numbers(5)`);
    await rows.putTargets(batch, [{ environmentId: environment, key, cutoffMs: Date.now() }]);
    const erase = async () => {
      do await rows.sweep(batch);
      while ((await rows.findSurvivors(batch)).length > 0);
    };
    const { adding, erasing } = await fixture.withoutMerges(async () => {
      const adding = fixture.run(COINS);
      await until('a month is requested', async () => (await current()).includes('MATERIALIZE COLUMN'));
      const erasing = erase();
      await until('the deletion waits for the backfill', async () => (await current()).includes('_row_exists'));
      return { adding, erasing };
    });
    await erasing;
    expect((await adding).code).toBe(0);
    expect(
      await fixture.query(`SELECT groupArray(property_coins) FROM events WHERE environment_id = '${environment}'`),
    ).toBe('[1]');
    await rows.removeDeleted();
    expect(
      await fixture.query(`SELECT groupArray(property_coins) FROM events WHERE environment_id = '${environment}'
        SETTINGS apply_deleted_mask = 0`),
    ).toBe('[1]');
  } finally {
    await rows.dropTargets(batch);
    await rows.close();
    await fixture.drop('coins');
  }
});

it('the column backfill waits for an unfinished deletion, and reports the wait', async () => {
  await fixture.withoutMerges(async () => {
    await fixture.query("ALTER TABLE events DELETE WHERE environment_id = 'unknown' SETTINGS mutations_sync = 0");
    const { code, progress } = await fixture.run(COINS, { stopAt: /waiting for other mutations on events: 1/ });
    expect([code, progress]).toEqual([1, expect.stringContaining('run the command again')]);
    expect(await unfinished()).toBe(1);
  });
  expect((await fixture.run(COINS)).code).toBe(0);
  await fixture.drop('coins');
});

it('a failing column backfill is cancelled, so that it does not block deletions, and prints no property values', async () => {
  await fixture.run(COINS);
  await fixture.query(`ALTER TABLE events MODIFY COLUMN property_coins DEFAULT throwIf(length(properties) > 0)`);
  await fixture.query("ALTER TABLE events CLEAR COLUMN property_coins IN PARTITION '2026-06-01'");
  const { code, progress } = await fixture.run(COINS);
  expect(code).toBe(1);
  expect(progress).toMatch(/the backfill failed with FUNCTION_THROW_IF_VALUE_IS_NON_ZERO: queries remain correct/);
  expect(progress).not.toContain('"coins"');
  expect(await unfinished()).toBe(0);
  await fixture.drop('coins');
});

it('columns drop cancels a backfill, and waits until the files are rewritten without the column', async () => {
  await fixture.withoutMerges(async () => {
    await fixture.run(COINS, { stopAt: /writing/ });
    expect(await unfinished()).toBe(1);
    for (let round = 0; round < 2; round++) {
      const { code } = await fixture.run(['drop', '--name', 'coins', '--yes'], {
        stopAt: /waiting for ClickHouse to rewrite/,
      });
      expect(code).toBe(1);
      expect(await fixture.list()).toEqual([]);
    }
  });
  await until('the files are written', async () => (await unfinished()) === 0);
  const parts = `SELECT count() FROM system.parts_columns
    WHERE database = currentDatabase() AND active AND column = 'property_coins'`;
  expect(await fixture.query(parts)).toBe('0');
});

function toTarget({ environment }: ColumnsFixture) {
  const { CLICKHOUSE_URL, CLICKHOUSE_USER, CLICKHOUSE_PASSWORD, CLICKHOUSE_DATABASE } = environment;
  return {
    url: CLICKHOUSE_URL!,
    user: CLICKHOUSE_USER!,
    password: CLICKHOUSE_PASSWORD!,
    database: CLICKHOUSE_DATABASE!,
  };
}
