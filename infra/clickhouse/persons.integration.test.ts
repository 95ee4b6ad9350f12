import { randomBytes, randomUUID } from 'node:crypto';
import { createTables, testStores } from '@playline/testkit';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';

const { url, user, password } = testStores().clickhouse;
const database = `playline_test_${randomBytes(6).toString('hex')}`;

async function run(sql: string): Promise<string> {
  const headers = { 'x-clickhouse-user': user, 'x-clickhouse-key': password, 'x-clickhouse-database': database };
  const response = await fetch(url, { method: 'POST', headers, body: sql });
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  return text.trim();
}
const readRows = async (sql: string) =>
  (await run(`${sql} FORMAT JSONCompactEachRow`))
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as unknown[]);

const KEYS = Array.from({ length: 5 }, () => randomBytes(16).toString('hex'));
const toKeyLiteral = (hex: string) => `toFixedString(unhex('${hex}'), 16)`;

interface Override {
  readonly member: number;
  readonly person: number;
  readonly version: number;
}

const put = (environment: string, { member, person, version }: Override, storedAt = 'now64(3)') =>
  run(`INSERT INTO identity_overrides (environment_id, identity_key, person_key, version, stored_at)
    SELECT '${environment}', ${toKeyLiteral(KEYS[member]!)}, ${toKeyLiteral(KEYS[person]!)}, ${version}, ${storedAt}`);
/** Stores an override with a time that is old enough for the dictionary. */
const putOld = (environment: string, override: Override) => put(environment, override, 'now64(3) - INTERVAL 1 HOUR');
const reload = () => run('SYSTEM RELOAD DICTIONARY identity_persons');

const insertEvents = (environment: string) =>
  run(`INSERT INTO events (environment_id, type, event_name, event_time, received_at, message_id, identity_key, user_key, user_id) VALUES
    ${KEYS.map((key, member) => `('${environment}', 'track', 'e', '2026-10-01 10:00:00', '2026-10-01 10:00:00', '${randomUUID()}', unhex('${key}'), unhex('${isUser(member) ? key : ''}'), 'user-${member}')`).join(', ')}`);
/** A placeholder is sent as a user id without a key. */
const isUser = (member: number) => member % 2 === 0;

async function readPersons(environment: string) {
  const filter = `WHERE environment_id = '${environment}'`;
  const events = await readRows(
    `SELECT lower(hex(identity_key)), lower(hex(person_key)) FROM events_identified ${filter} ORDER BY ALL`,
  );
  const analysis = await readRows(`SELECT identity_id, person_id FROM analysis_events ${filter} ORDER BY ALL`);
  const days = await readRows(`SELECT DISTINCT person_id FROM person_days ${filter} ORDER BY ALL`);
  const persons = await readRows(`SELECT person_id, identities, members FROM persons ${filter} ORDER BY ALL`);
  const users = [];
  for (const [member] of KEYS.entries())
    users.push(
      await readRows(
        `SELECT identity_id FROM user_timeline(environment = '${environment}', user = 'user-${member}') ORDER BY ALL`,
      ),
    );
  return { events, analysis, days, persons, users };
}
function expected(overrides: readonly Override[]) {
  const persons = KEYS.map((key, member) => {
    const [latest] = overrides.filter((each) => each.member === member).sort((a, b) => b.version - a.version);
    return [key, latest === undefined ? key : KEYS[latest.person]!];
  });
  const events = [...persons].sort();
  const ids = [...new Set(persons.map(([, person]) => person!))].sort();
  const membersOf = (id: string) => events.filter(([, person]) => person === id).map(([key]) => key);
  return {
    events,
    analysis: events,
    days: ids.map((id) => [id]),
    persons: ids.map((id) => [id, String(membersOf(id).length), membersOf(id)]),
    users: persons.map(([, person], member) => (isUser(member) ? membersOf(person!).map((key) => [key]) : [])),
  };
}

beforeAll(() => createTables({ url, user, password, database }));
afterAll(() => run(`DROP DATABASE ${database} SYNC`));

it('every view shows the person of the latest decision, regardless of its age and storage order', async () => {
  const decisions = fc.uniqueArray(
    fc.record({ member: fc.nat(4), person: fc.nat(4), version: fc.nat(20), isOld: fc.boolean() }),
    { selector: ({ version }) => version, maxLength: 8 },
  );
  let run = 0;
  await fc.assert(
    fc.asyncProperty(decisions, async (list) => {
      const environment = `test-${run++}`;
      // Removes the decisions of the previous run, which uses the same identities.
      await clear();
      await insertEvents(environment);
      for (const decision of list) if (decision.isOld) await putOld(environment, decision);
      await reload();
      for (const decision of list) if (!decision.isOld) await put(environment, decision);
      expect(await readPersons(environment)).toEqual(expected(list));
    }),
    { numRuns: runsOf({ quick: 4, all: 12 }) },
  );
});

const clear = () => run('TRUNCATE TABLE identity_overrides');

it('an event without an owner has no person, and an identity without links is its own person', async () => {
  await clear();
  await reload();
  await run(`INSERT INTO events (environment_id, type, event_name, event_time, received_at, message_id, identity_key) VALUES
    ('ownerless', 'track', 'e', '2026-10-01 10:00:00', '2026-10-01 10:00:00', '${randomUUID()}', unhex('${'0'.repeat(32)}'))`);
  expect(
    await readRows("SELECT person_id, identity_id FROM analysis_events WHERE environment_id = 'ownerless'"),
  ).toEqual([[null, null]]);
  await insertEvents('unlinked');
  expect(await readPersons('unlinked')).toEqual(expected([]));
});

it('person_timeline returns each event of a person once, from all identities, and no event of another person', async () => {
  await clear();
  await reload();
  await insertEvents('line');
  await insertEvents('line');
  const copy = `INSERT INTO events SELECT * REPLACE(received_at + 5 AS received_at) FROM events WHERE environment_id = 'line'`;
  await run(copy);
  await put('line', { member: 1, person: 0, version: 0 });
  const readTimeline = (person: string) =>
    readRows(
      `SELECT lower(hex(identity_key)), toString(received_at) FROM person_timeline(environment = 'line', person = '${person}') ORDER BY ALL`,
    );
  const first = '2026-10-01 10:00:00.000';
  expect(await readTimeline(KEYS[0]!)).toEqual([KEYS[0], KEYS[0], KEYS[1], KEYS[1]].sort().map((key) => [key, first]));
  expect(await readTimeline(KEYS[2]!)).toEqual([KEYS[2], KEYS[2]].map((key) => [key, first]));
});

it('the latest override applies to timelines even if a client reads each partition separately', async () => {
  await clear();
  await reload();
  await insertEvents('weeks');
  await put('weeks', { member: 1, person: 0, version: 1 }, "'2026-01-05 00:00:00'");
  await put('weeks', { member: 1, person: 1, version: 2 }, "'2026-02-05 00:00:00'");
  for (const call of [
    `user_timeline(environment = 'weeks', user = 'user-0')`,
    `person_timeline(environment = 'weeks', person = '${KEYS[0]}')`,
  ])
    expect(
      await readRows(`SELECT identity_id FROM ${call} SETTINGS do_not_merge_across_partitions_select_final = 1`),
    ).toEqual([[KEYS[0]]]);
});

it('funnels and time differences accept the timestamps of analyst views without conversion', async () => {
  await insertEvents('times');
  const sql = `SELECT windowFunnel(60)(event_second, event_name = 'e', event_name = 'f'), max(dateDiff('day', event_time, received_at))
    FROM analysis_events WHERE environment_id = 'times'`;
  expect(await readRows(sql)).toEqual([[1, '0']]);
});

it('a filter on a column in which copies differ applies to the copy received first', async () => {
  await run('SYSTEM STOP MERGES events');
  const id = randomUUID();
  const copy = (receivedAt: string, properties: string) =>
    run(`INSERT INTO events (environment_id, type, event_name, event_time, received_at, message_id, identity_key, kafka_offset, properties) VALUES
      ('copies', 'track', 'e', '2026-10-01 10:00:00', '${receivedAt}', '${id}', unhex('${KEYS[0]}'), ${properties.length}, '${properties}')`);
  await copy('2026-10-01 10:00:09', '{"second":true}');
  await copy('2026-10-01 10:00:01', '{"first":true}');
  const keyed = [`message_id = '${id}'`, `event_name = 'e'`, `event_time >= '2026-10-01' AND type = 'track'`];
  const filters = ['1', ...keyed].map((and) => `environment_id = 'copies' AND ${and}`);
  for (const view of ['events_exact', 'events_identified', 'analysis_events_raw']) {
    for (const where of filters) {
      const found = (properties: string) =>
        readRows(`SELECT properties FROM ${view} WHERE ${where} AND position(properties, '${properties}') > 0`);
      expect(await found('second'), `${view}: ${where}`).toEqual([]);
      expect(await found('first'), `${view}: ${where}`).toEqual([['{"first":true}']]);
    }
  }
  await run('SYSTEM START MERGES events');
});

it('sessions and last_seen_at use the receipt time for an event in the future', async () => {
  const event = (hours: number, session: string) =>
    `('ahead', 'track', 'e', toDateTime64('2026-10-01 10:00:00', 3, 'UTC') + INTERVAL ${hours} HOUR, '2026-10-01 10:00:30', '${randomUUID()}', unhex('${KEYS[0]}'), '${session}')`;
  await run(`INSERT INTO events (environment_id, type, event_name, event_time, received_at, message_id, identity_key, session_id) VALUES
    ${[event(0, 'mixed'), event(20, 'mixed'), event(23, 'only ahead')].join(', ')}`);
  const seen = await readRows(
    "SELECT toString(first_seen_at), toString(last_seen_at) FROM persons WHERE environment_id = 'ahead'",
  );
  expect(seen).toEqual([['2026-10-01 10:00:00.000', '2026-10-01 10:01:30.000']]);
  const sessions = await readRows(
    `SELECT session_id, toString(started_at), toString(ended_at), seconds FROM sessions_between(environment = 'ahead', since = '2026-10-01', until = '2026-10-02') ORDER BY session_id`,
  );
  const end = '2026-10-01 10:01:30.000';
  expect(sessions).toEqual([
    ['mixed', '2026-10-01 10:00:00.000', end, '90'],
    ['only ahead', end, end, '0'],
  ]);
});

it('an identify message without traits keeps the latest traits, and an empty object replaces them', async () => {
  const traits = async (environment: string, texts: readonly string[]) => {
    for (const [index, text] of texts.entries())
      await run(`INSERT INTO events (environment_id, type, event_time, received_at, message_id, identity_key, traits) VALUES
        ('${environment}', 'identify', '2026-10-01 10:00:0${index}', '2026-10-01 11:00:00', '${randomUUID()}', unhex('${KEYS[0]}'), '${text}')`);
    return readRows(`SELECT traits FROM persons_raw WHERE environment_id = '${environment}'`);
  };
  expect(await traits('none', ['{"plan":"pro"}', ''])).toEqual([['{"plan":"pro"}']]);
  expect(await traits('given', ['{"plan":"pro"}', '{"level":3}', ''])).toEqual([['{"level":3}']]);
  expect(await traits('empty', ['{"plan":"pro"}', '{}'])).toEqual([['{}']]);
  expect(await traits('never', [''])).toEqual([['']]);
});
