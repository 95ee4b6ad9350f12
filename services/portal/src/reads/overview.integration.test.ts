import { afterAll, beforeAll, expect, it } from 'vitest';
import { openTestReads, type TestReads, toSqlTime } from '../test/test-reads.ts';

const SPAN_S = 3_600;
// Recent, because old numbers of players expire.
const UNTIL_S = Math.floor(Date.now() / 1000 / SPAN_S) * SPAN_S;
const search = { environmentId: 'shown', spanS: SPAN_S, stepS: 60, sinceS: UNTIL_S - SPAN_S, untilS: UNTIL_S };
const timeOf = (s: number) => toSqlTime(s * 1000).slice(0, 19);

let database: TestReads;
beforeAll(async () => {
  database = await openTestReads();
});
afterAll(() => database?.close());

const toCount = (agoS: number, messages: number, changes: object) => ({
  environment_id: 'shown',
  step_s: 60,
  start_at: timeOf(UNTIL_S - agoS),
  messages,
  counted_at: '2026-11-20 10:01:00',
  ...changes,
});

it('reads.overview compares a span with the previous span, and replaces counts that were counted again', async () => {
  const client = { kind: 'client', library: 'web', library_version: '1.0' };
  await database.insert('event_counts', [
    toCount(60, 7, { ...client, counted_at: '2026-11-20 10:00:10' }),
    toCount(60, 5, client),
    toCount(SPAN_S, 3, client),
    toCount(SPAN_S + 60, 2, client),
    toCount(2 * SPAN_S + 60, 100, client),
    toCount(60, 1, { kind: 'event', name: 'purchase' }),
    toCount(60, 4, {
      kind: 'rejection',
      name: 'INVALID_ENUM',
      field: 'surface',
      library: 'web',
      library_version: '1.0',
    }),
    toCount(60, 1_000, { ...client, environment_id: 'other' }),
    toCount(60, 1_000, { ...client, step_s: 3_600 }),
  ]);
  const players = (untilS: number, count: number, changes = {}) => ({
    environment_id: 'shown',
    span_s: SPAN_S,
    slot_at: timeOf(untilS),
    until_at: timeOf(untilS),
    kind: 'all',
    players: count,
    ...changes,
  });
  await database.insert('player_counts', [
    // Players are counted before the messages of the same minute.
    players(UNTIL_S + 60, 9),
    players(UNTIL_S + 60, 6, { kind: 'event', name: 'purchase' }),
    players(UNTIL_S - SPAN_S, 4),
    players(UNTIL_S - SPAN_S - 300, 50),
  ]);
  const delay = (agoS: number, delayMs: number, messages: number) => ({
    environment_id: 'shown',
    step_s: 60,
    start_at: timeOf(UNTIL_S - agoS),
    delay_ms: delayMs,
    messages,
  });
  await database.insert('event_delays', [
    delay(60, 100, 98),
    delay(60, 900, 2),
    delay(60, 0, 500),
    delay(SPAN_S + 60, 200, 1),
  ]);
  const { clients, events, causes, accepted, rejected, eventPlayers, ...overview } =
    await database.reads.overview(search);
  expect(clients.map(({ library, value, previous, total }) => [library, value, previous, total])).toEqual([
    ['web', 8, 2, 8],
  ]);
  expect(events.map(({ name, value }) => [name, value])).toEqual([['purchase', 1]]);
  expect(causes.map(({ name, field, libraryVersion, value }) => [name, field, libraryVersion, value])).toEqual([
    ['INVALID_ENUM', 'surface', '1.0', 4],
  ]);
  expect(accepted.map(({ atS, value }) => [UNTIL_S - atS, value])).toEqual([
    [SPAN_S, 3],
    [60, 5],
  ]);
  expect(rejected.map(({ value }) => value)).toEqual([4]);
  expect([overview.players?.value, overview.players?.previous, eventPlayers.get('purchase')]).toEqual([9, 4, 6]);
  expect([overview.delay?.value, overview.delay?.previous, overview.firstS]).toEqual([900, 200, null]);
});

it('reads.overview returns the time of the first message before its minute is counted', async () => {
  const minuteS = Math.floor(Date.now() / 60_000) * 60;
  await database.insert('events', [
    { environment_id: 'new', type: 'track', event_time: timeOf(minuteS), received_at: timeOf(minuteS + 20) },
  ]);
  const { firstS, accepted } = await database.reads.overview({ ...search, environmentId: 'new' });
  expect([firstS, accepted]).toEqual([minuteS, []]);
});
