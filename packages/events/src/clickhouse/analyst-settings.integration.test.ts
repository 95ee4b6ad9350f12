import { randomUUID } from 'node:crypto';
import type { ProjectRecord } from '@playline/contracts';

import { type OwnDatabase, openOwnDatabase } from '@playline/testkit';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type AuditRow, auditOfProject } from '../audit/entries.ts';

let database: OwnDatabase;
const run = (sql: string) => database.query(sql);
const readRows = async (sql: string) =>
  (await run(`${sql} FORMAT JSONCompactEachRow`))
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as unknown[]);

const toProject = (id: string, changes: Partial<ProjectRecord> = {}): ProjectRecord => ({
  id,
  revision: 1,
  name: id,
  state: 'live',
  environments: [{ id: `${id}-live`, name: 'live', kind: 'production', cap: null, limit: null, createdAt: 0 }],
  timeZone: 'UTC',
  safeProperties: [],
  alertWebhook: '',
  alertEmails: [],
  alertKeys: [],
  createdAt: 0,
  changedAt: Date.now(),
  changedBy: 'ada',
  requestId: randomUUID(),
  ...changes,
});
/** Inserts the rows of `audit_log` that the event writer derives from the record. */
async function store(project: ProjectRecord): Promise<void> {
  const toRow = ({ projectId, happenedAt, entryId, kind, revision, action, detail }: AuditRow) =>
    JSON.stringify({
      project_id: projectId,
      happened_at: happenedAt,
      entry_id: entryId,
      kind,
      revision,
      action,
      detail,
    });
  await run(`INSERT INTO audit_log FORMAT JSONEachRow ${auditOfProject(project).map(toRow).join(' ')}`);
}

interface Event {
  readonly atMs: number;
  readonly person?: number;
  readonly session?: string;
  readonly name?: string;
  readonly aheadMs?: number;
  readonly properties?: string;
}
const toKey = (person: number) => Buffer.alloc(16, person + 1).toString();
const insert = (environment: string, events: readonly Event[]) =>
  run(
    `INSERT INTO events FORMAT JSONEachRow ${events
      .map(({ atMs, person = 0, session = '', name = 'e', aheadMs = -1000, properties = '' }) =>
        JSON.stringify({
          environment_id: environment,
          type: 'track',
          event_name: name,
          event_time: new Date(atMs).toISOString().replace(/[TZ]/g, ' ').trim(),
          received_at: new Date(atMs - aheadMs).toISOString().replace(/[TZ]/g, ' ').trim(),
          message_id: randomUUID(),
          identity_key: toKey(person),
          session_id: session,
          properties,
        }),
      )
      .join(' ')}`,
  );

beforeAll(async () => {
  database = await openOwnDatabase();
});
afterAll(() => database.close());

const settingsOf = (id: string) =>
  readRows(`SELECT time_zone, safe_properties FROM analysis_environments WHERE environment_id = '${id}-live'`);

it('the latest revision of a project sets the time zone and safe properties, also if records are stored again', async () => {
  const first = toProject('twice');
  const second = toProject('twice', { revision: 2, timeZone: 'Asia/Tokyo', safeProperties: ['level'] });
  for (const record of [first, second, first]) await store(record);
  expect(await settingsOf('twice')).toEqual([['Asia/Tokyo', ['level']]]);
  // A record of a later release may name a time zone that this server does not know.
  await store(toProject('twice', { revision: 3, timeZone: 'Moon/Tycho' }));
  expect(await settingsOf('twice')).toEqual([['UTC', []]]);
});

const ZONES = ['UTC', 'Europe/London', 'Asia/Kathmandu', 'Pacific/Kiritimati', 'America/St_Johns', 'Pacific/Pago_Pago'];
const dayIn = (timeZone: string, ms: number) => new Intl.DateTimeFormat('sv-SE', { timeZone }).format(ms);
const START_MS = Date.parse('2026-03-27T00:00:00Z');
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const MINUTE_MS = 60_000;

it('days of persons, events and sessions follow the time zone of the project, and any other zone on request', async () => {
  // London changes to summer time within these days.
  const event = fc.record({
    atMs: fc.nat(96 * 4).map((quarter) => START_MS + quarter * (HOUR_MS / 4)),
    person: fc.nat(2),
    session: fc.constantFrom('', 'a', 'b'),
    aheadMs: fc.constantFrom(-1000, 0, 23 * HOUR_MS),
  });
  let runs = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...ZONES),
      fc.array(event, { minLength: 1, maxLength: 12 }),
      async (zone, events) => {
        const id = `days${runs++}`;
        await store(toProject(id, { timeZone: zone }));
        await insert(`${id}-live`, events);
        const where = `WHERE environment_id = '${id}-live'`;
        const days = (timeZone: string) =>
          [...new Set(events.map(({ atMs, person }) => `${dayIn(timeZone, atMs)} ${person}`))].sort();
        const readDays = async (view: string, filter = '') =>
          (
            await readRows(
              `SELECT DISTINCT concat(toString(day), ' ', toString(ascii(person_key) - 1)) FROM ${view} ${where} ${filter} ORDER BY 1`,
            )
          ).flat();
        expect(await readDays('person_days')).toEqual(days(zone));
        const one = "AND day = '2026-03-29'";
        expect(await readDays('person_days', one)).toEqual(days(zone).filter((text) => text.startsWith('2026-03-29')));
        expect(await readDays("person_days_in(zone = 'America/New_York')")).toEqual(days('America/New_York'));
        expect(await readRows(`SELECT DISTINCT toString(local_day) FROM analysis_events ${where} ORDER BY 1`)).toEqual(
          [...new Set(events.map(({ atMs }) => dayIn(zone, atMs)))].sort().map((day) => [day]),
        );
        const firstDays = Map.groupBy(events, ({ person }) => person);
        const cappedOf = ({ atMs, aheadMs }: Event) => Math.min(atMs, atMs - (aheadMs ?? 0) + MINUTE_MS);
        expect(
          await readRows(
            `SELECT toUInt8(ascii(person_key) - 1) AS person, toString(first_seen_day) FROM persons ${where} ORDER BY person`,
          ),
        ).toEqual(
          [...firstDays]
            .sort(([a], [b]) => a - b)
            .map(([person, list]) => [person, dayIn(zone, Math.min(...list.map(cappedOf)))]),
        );
        const sessionColumns = 'toString(day), session_id, person_id, toString(started_at), events';
        const inRange = "day >= '2026-03-27' AND day < '2026-04-02'";
        const plain = `SELECT ${sessionColumns} FROM sessions ${where} AND ${inRange} ORDER BY ALL`;
        const range = `environment = '${id}-live', since = '2026-03-26', until = '2026-04-03'`;
        const started = await readRows(
          `SELECT toString(day), session_id, person_id FROM sessions ${where} ORDER BY ALL`,
        );
        expect(started).toEqual(toSessionDays(events, cappedOf, zone));
        // A session that lasts three days ends earlier in the view that reads single days.
        const isShort = events.every(({ atMs }) => atMs < START_MS + 24 * HOUR_MS);
        if (isShort)
          expect(await readRows(plain)).toEqual(
            await readRows(`SELECT ${sessionColumns} FROM sessions_between(${range}) WHERE ${inRange} ORDER BY ALL`),
          );
      },
    ),
    { numRuns: runsOf({ quick: 5, all: 60 }) },
  );
});

/** A session begins on each day in UTC with events that follows a day without events, and ends on the next day. */
function toSessionDays(events: readonly Event[], timeOf: (event: Event) => number, zone: string): unknown[][] {
  const groups = Map.groupBy(
    events.filter(({ session }) => session !== ''),
    ({ session, person = 0 }) => `${session} ${Buffer.alloc(16, person + 1).toString('hex')}`,
  );
  const rows = [...groups].flatMap(([name, list]) => {
    const dayOf = ({ atMs }: Event) => Math.floor(atMs / DAY_MS);
    const days = new Set(list.map(dayOf));
    const starts = [...days].filter((day) => !days.has(day - 1));
    return starts.map((start) => {
      const events = list.filter((event) => dayOf(event) === start || dayOf(event) === start + 1);
      return [dayIn(zone, Math.min(...events.map(timeOf))), ...name.split(' ')];
    });
  });
  return rows.sort((a, b) => (a.join() < b.join() ? -1 : 1));
}

it('safe_properties contains exactly the declared properties, with unchanged values', async () => {
  const name: fc.Arbitrary<string> = fc.constantFrom('level', 'mode', 'e-mail', 'a"b', 'ключ', '');
  // ClickHouse reads no member of an object that contains an integer outside 64 bits.
  const value = fc.oneof(
    fc.string({ unit: fc.constantFrom('a', '"', '\\', '/', '\n', 'é', '日', '😀') }),
    fc.integer(),
    fc.boolean(),
    fc.constantFrom(null, 0.5, [1, { level: 2 }]),
  );
  let runs = 0;
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(name), fc.dictionary(name, value), async (declared, properties) => {
      const id = `safe${runs++}`;
      await store(toProject(id, { safeProperties: declared }));
      await insert(`${id}-live`, [{ atMs: Date.now(), properties: JSON.stringify(properties) }]);
      const [[text = ''] = []] = await readRows(
        `SELECT safe_properties FROM analysis_events WHERE environment_id = '${id}-live'`,
      );
      const expected = Object.entries(properties).filter(([each]) => declared.includes(each));
      expect(JSON.parse(String(text))).toEqual(JSON.parse(JSON.stringify(Object.fromEntries(expected))));
    }),
    { numRuns: runsOf({ quick: 5, all: 60 }) },
  );
});

it('properties_between returns declared properties as propertyText and propertyNumber do, and no other properties', async () => {
  await store(toProject('between', { safeProperties: ['level', 'score'] }));
  await store(toProject('other', { safeProperties: ['mode'] }));
  const atMs = Date.now() - MINUTE_MS;
  const values = [7, 'seven', '7', null, { level: 1 }];
  const texts = values.map((level, score) => JSON.stringify({ mode: 'pvp', level, score }));
  await insert(
    'between-live',
    ['', ...texts].map((properties, index) => ({ atMs: atMs + index, properties })),
  );
  const time = (ms: number) => new Date(ms).toISOString().slice(0, -1).replace('T', ' ');
  const range = `since = '${time(atMs + 1)}', until = '${time(atMs + values.length)}'`;
  const pairs = [
    ['level', 'score'],
    ['score', 'level'],
    ['mode', 'level'],
    ['level', 'mode'],
    ['', ''],
  ];
  for (const [text, number] of pairs) {
    const found = await readRows(
      `SELECT toUnixTimestamp64Milli(event_time) AS at, text, number
      FROM properties_between(environment = 'between-live', ${range}, text = '${text}', number = '${number}') ORDER BY at`,
    );
    const expected = await readRows(
      `SELECT toUnixTimestamp64Milli(event_time) AS at, propertyText(safe_properties, '${text}'), propertyNumber(safe_properties, '${number}')
      FROM analysis_events WHERE environment_id = 'between-live' ORDER BY at`,
    );
    expect(expected).toHaveLength(values.length + 1);
    expect(found).toEqual(expected.slice(1, -1));
  }
});

it('property_catalogue shows declared and common names, and counts all other names as hidden', async () => {
  await store(toProject('names', { safeProperties: ['rare', 'level_7'] }));
  const common = (person: number) => ({
    mode: 'pvp',
    'ada@example.org': 1,
    player_4711: true,
    ...(person > 0 ? { few: 1 } : {}),
  });
  const events = Array.from({ length: 5 }, (_, person) => ({
    atMs: Date.now() - MINUTE_MS,
    person,
    name: 'win',
    properties: JSON.stringify({ ...common(person), ...(person === 0 ? { rare: 1, level_7: 'x', mode: 3 } : {}) }),
  }));
  await insert('names-live', [...events, { atMs: Date.now(), name: 'win' }]);
  const columns = 'property_name, is_safe, types, toUInt32(events), round(share, 3)';
  expect(
    await readRows(`SELECT ${columns} FROM property_catalogue WHERE environment_id = 'names-live' ORDER BY 1`),
  ).toEqual([
    ['(hidden)', false, ['Bool', 'Int64'], 14, 2.333],
    ['level_7', true, ['String'], 1, 0.167],
    ['mode', false, ['Int64', 'String'], 5, 0.833],
    ['rare', true, ['Int64'], 1, 0.167],
  ]);
});
