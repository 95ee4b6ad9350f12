import { randomBytes } from 'node:crypto';
import { createQueryRows, readRows } from '@playline/stores';
import { createTables, testStores } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createOperate } from '../test/operate.ts';
import { findDifferences, findDrift, listTableSlices } from './drift.ts';

const { url, user, password } = testStores().clickhouse;
const database = `playline_test_${randomBytes(6).toString('hex')}`;
const account = { url, user, password, database };
const query = createQueryRows(account);

const run = async (sql: string) => {
  const headers = { 'x-clickhouse-user': user, 'x-clickhouse-key': password, 'x-clickhouse-database': database };
  const response = await fetch(url, { method: 'POST', headers, body: sql });
  if (!response.ok) throw new Error(await response.text());
};
const readTables = async () => [
  await readRows(
    query('SELECT * REPLACE(lower(hex(identity_key)) AS identity_key) FROM identity_days FINAL ORDER BY ALL'),
  ),
  await readRows(
    query(`SELECT environment_id, lower(hex(identity_key)), test, min(first_seen_at), max(last_seen_at), lower(hex(max(first_touch))),
      lower(hex(max(latest_traits))) FROM identities GROUP BY environment_id, identity_key, test ORDER BY ALL`),
  ),
  await readRows(
    query(`SELECT environment_id, lower(hex(identity_key)), day, session_id, min(first_at), max(last_at), arraySort(groupUniqArrayArray(messages))
      FROM session_days GROUP BY environment_id, identity_key, day, session_id ORDER BY ALL`),
  ),
];
const drift = async () =>
  Object.fromEntries((await findDrift([query], () => {})).map(({ table, ...counts }) => [table, counts]));
const operate = createOperate(
  { CLICKHOUSE_URL: url, CLICKHOUSE_USER: user, CLICKHOUSE_PASSWORD: password, CLICKHOUSE_DATABASE: database },
  '',
);
const derive = () => operate('derive');
const NO_DRIFT = { missing: 0, unfounded: 0, fault: null };
const NO_DRIFTS = { identity_days: NO_DRIFT, identities: NO_DRIFT, session_days: NO_DRIFT };

beforeAll(async () => {
  await createTables(account);
  await run(`INSERT INTO events (environment_id, type, event_name, event_time, received_at, message_id, identity_key, session_id, traits)
    SELECT if(number % 2 = 0, 'it''s one', 'two'), 'identify', concat('event ', toString(number % 3)),
      toDateTime64('2026-09-01 00:00:00', 3, 'UTC') + number * 7000 AS event_time, event_time, generateUUIDv4(),
      toFixedString(unhex(leftPad(hex(1 + number % 40), 32, '0')), 16), concat('session ', toString(number % 80)), concat('{"n":', toString(number), '}')
    FROM numbers(600)`);
});
afterAll(() => run(`DROP DATABASE ${database} SYNC`));

it('derive does not repair tables that match the events', async () => {
  expect(await drift()).toEqual(NO_DRIFTS);
  expect(await derive()).toMatchObject({ code: 0, lines: [expect.stringContaining('nothing to repair')] });
});

it('derive inserts missing rows and deletes rows without events', async () => {
  const expected = await readTables();
  expect(expected.map((rows) => rows.length > 30)).toEqual([true, true, true]);
  await run("DELETE FROM identity_days WHERE day < '2026-09-20' AND environment_id = 'two'");
  await run('DELETE FROM identities WHERE reinterpretAsUInt8(reverse(identity_key)) % 4 = 1');
  await run("DELETE FROM session_days WHERE session_id = 'session 7'");
  const unknownKey = "toFixedString(unhex('000000000000000000000000000000f0'), 16)";
  const knownKey = "toFixedString(unhex('00000000000000000000000000000002'), 16)";
  await run(
    `INSERT INTO identity_days VALUES ('two', ${unknownKey}, '2026-09-03', 'invented', false), ('it''s one', ${knownKey}, '1999-01-01', '', false)`,
  );
  // This minimum is earlier than all events of the identity, so it can be corrected only by deriving the row again.
  await run(`INSERT INTO identities (environment_id, identity_key, test, first_seen_at, last_seen_at)
    SELECT 'two', ${knownKey}, false, '1999-01-01 00:00:00', '1999-01-01 00:00:00'`);
  await run(`INSERT INTO session_days (environment_id, day, identity_key, session_id, messages)
    SELECT 'two', '2026-09-03', ${knownKey}, 'session 1', [toUInt64(7)]`);
  const found = await drift();
  expect(found.identity_days).toMatchObject({ unfounded: 2 });
  expect(found.identity_days!.missing).toBeGreaterThan(50);
  expect(found.identities!.unfounded).toBeGreaterThan(0);
  expect(found.identities!.missing).toBeGreaterThan(5);
  expect(found.session_days).toMatchObject({ unfounded: 1 });
  expect(found.session_days!.missing).toBeGreaterThan(0);
  expect(await derive()).toMatchObject({ code: 0, lines: [expect.stringContaining('rows repaired')] });
  expect(await readTables()).toEqual(expected);
  expect(await drift()).toEqual(NO_DRIFTS);
});

it('derive compares each identity in exactly one slice of a large table', async () => {
  await run(`INSERT INTO events (environment_id, type, event_name, event_time, received_at, message_id, identity_key)
    SELECT 'every byte', 'track', 'e', '2026-09-01', '2026-09-01', generateUUIDv4(), unhex(repeat(hex(toUInt8(1 + number)), 16)) FROM numbers(255)`);
  await run('OPTIMIZE TABLE identities FINAL');
  const slices = (await listTableSlices(query, 100)).filter(({ table }) => table.name === 'identities');
  expect(slices.map(({ name }) => name)).toEqual([1, 2, 3, 4].map((slice) => `identities, slice ${slice} of 4`));
  for (const slice of slices) expect((await findDifferences(query, slice)).found).toEqual([]);
  await run(`DELETE FROM identities WHERE environment_id = 'every byte'`);
  const found = await Promise.all(slices.map(async (slice) => (await findDifferences(query, slice)).found));
  expect(found.map((differences) => differences.length)).toEqual([63, 64, 64, 64]);
  expect(new Set(found.flat().map(({ key }) => key)).size).toBe(255);
  expect((await derive()).code).toBe(0);
});

it('derive does not report concurrent inserts as drift, and does not lose their rows', async () => {
  let isWriting = true;
  let sent = 0;
  const writing = (async () => {
    while (isWriting)
      await run(`INSERT INTO events (environment_id, type, event_name, event_time, received_at, message_id, identity_key)
        SELECT 'busy', 'track', 'e', toDateTime64('2026-10-01 00:00:00', 3, 'UTC') + ${sent++} * 60 AS event_time, event_time, generateUUIDv4(),
          toFixedString(unhex(leftPad(hex(1 + number), 32, '0')), 16) FROM numbers(20)`);
  })();
  try {
    for (let round = 0; round < 2 || sent <= 2; round++) {
      expect(await drift()).toEqual(NO_DRIFTS);
      expect((await derive()).code).toBe(0);
    }
  } finally {
    isWriting = false;
    await writing;
  }
  expect(await drift()).toEqual(NO_DRIFTS);
});
