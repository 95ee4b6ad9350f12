import { createEventCounts, createEventDays } from '@playline/events/clickhouse';
import { type ClickHouseAccount, createQueryRows, readRows } from '@playline/stores';
import { openOwnDatabase } from '@playline/testkit';
import { expect, it, onTestFinished } from 'vitest';
import { createOperate } from '../test/operate.ts';
import { findCountDrift, findDayDrift } from './counts.ts';

const createDerive = (target: ClickHouseAccount) =>
  createOperate(
    {
      CLICKHOUSE_URL: target.url,
      CLICKHOUSE_USER: target.user,
      CLICKHOUSE_PASSWORD: target.password,
      CLICKHOUSE_DATABASE: target.database,
    },
    '',
  )('derive');

it('derive has wrong counts of the last day counted again, and erased messages that are still counted are not wrong', async () => {
  const { target, query: run, close } = await openOwnDatabase();
  onTestFinished(close);
  const [counts, query] = [createEventCounts(target), createQueryRows(target)];
  const derive = () => createDerive(target);
  const countDrift = async () => {
    const { missing, unfounded, fault } = await findCountDrift(query, () => {});
    return [missing, unfounded, fault];
  };
  const start = `fromUnixTimestamp(${60 * Math.floor(Date.now() / 60_000) - 7_200})`;
  // The second row of every three is a copy of the first one.
  await run(`INSERT INTO events (environment_id, type, event_name, event_time, received_at, message_id, identity_key)
    SELECT 'counted', 'track', concat('event ', toString(n % 2)), ${start}, ${start} + intDiv(n, 100) * 60, toUUID(leftPad(toString(n), 32, '0')),
      toFixedString(unhex(leftPad(hex(1 + n % 40), 32, '0')), 16)
    FROM (SELECT number - (number % 3 = 1) AS n FROM numbers(300))`);
  expect(await countDrift()).toEqual([0, 0, null]);
  await counts.update();
  expect(await countDrift()).toEqual([0, 0, null]);
  const readCounts = async () =>
    (await readRows(query(`SELECT * EXCEPT counted_at FROM event_counts FINAL WHERE messages > 0 ORDER BY ALL`))).join(
      '\n',
    );
  const expected = await readCounts();
  await run(`INSERT INTO event_counts SELECT * REPLACE (messages - 1 AS messages, now64(3) AS counted_at) FROM event_counts FINAL
    WHERE step_s = 60 AND kind = 'event' AND start_at = ${start}`);
  await run(
    `INSERT INTO event_counts SELECT * REPLACE ('invented' AS name) FROM event_counts FINAL WHERE environment_id = 'counted' AND step_s = 60 AND kind = 'event' LIMIT 1`,
  );
  // Two minutes are too low and one is invented, so the three longer intervals of the two are too high, and those of the
  // invented one are missing.
  expect(await countDrift()).toEqual([5, 7, null]);
  expect(await derive()).toMatchObject({ code: 0, lines: [expect.stringContaining('rows repaired')] });
  await counts.update();
  expect([await countDrift(), await readCounts()]).toEqual([[0, 0, null], expected]);
  await run(`DELETE FROM events WHERE environment_id = 'counted' AND identity_key = unhex(leftPad('1', 32, '0'))`);
  expect((await countDrift())[1]).toBeGreaterThan(0);
  await run(
    "INSERT INTO erasure_fences (environment_id, identity_key, cutoff_at) VALUES ('counted', unhex(repeat('ab', 16)), now64(3))",
  );
  expect([await countDrift(), await readCounts()]).toEqual([[0, 0, null], expected]);
});

it('derive has days counted again whose numbers are wrong or that are not known', async () => {
  const { target, query: run, close } = await openOwnDatabase();
  onTestFinished(close);
  const query = createQueryRows(target);
  let nowMs = 0;
  const days = createEventDays(target, { nowMs: () => nowMs, settleS: 0 });
  const open = `SELECT count() FROM (SELECT 1 FROM counted_days GROUP BY environment_id, day HAVING max(stored_at) >= max(counted_at))`;
  // On a busy machine, one run may not count all days.
  const count = async () => {
    do {
      await days.update();
      nowMs += 60_000;
      await days.update();
    } while (Number((await readRows(query(open)))[0]?.[0]) > 0);
  };
  const dayDrift = async () => {
    const { missing, unfounded, fault } = await findDayDrift([query], () => {});
    return [missing, unfounded, fault];
  };
  const total = async () => (await readRows(query('SELECT toUInt32(sum(events)) FROM events_per_day'))).flat();
  await run(`INSERT INTO events (environment_id, type, event_name, event_time, message_id)
    SELECT 'counted', 'track', 'start', toDateTime64('2026-01-30', 3, 'UTC') + toIntervalDay(number % 4), generateUUIDv4() FROM numbers(8)`);
  await count();
  expect([await total(), await dayDrift()]).toEqual([[8], [0, 0, null]]);
  await run(
    `INSERT INTO event_days SELECT * REPLACE (events + 1 AS events, now64(3) AS counted_at) FROM event_days FINAL WHERE day = '2026-01-31'`,
  );
  await run(`ALTER TABLE counted_days DELETE WHERE day = '2026-02-01' SETTINGS mutations_sync = 1`);
  await run(`ALTER TABLE event_days DELETE WHERE day = '2026-02-01' SETTINGS mutations_sync = 1`);
  expect([await total(), await dayDrift()]).toEqual([[7], [1, 1, null]]);
  expect(await createDerive(target)).toMatchObject({ code: 0 });
  expect(await total()).toEqual([8]);
  await count();
  expect([await total(), await dayDrift()]).toEqual([[8], [0, 0, null]]);
});
