import { randomUUID } from 'node:crypto';
import { openErasureRows } from '@playline/erasure/clickhouse';
import { type OwnDatabase, openOwnDatabase } from '@playline/testkit';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';

// Compares the views of sessions with sessions that are computed from a list of messages, without SQL and without stored states.

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const START_MS = Date.parse('2026-03-27T00:00:00Z');
const START_DAY = START_MS / DAY_MS;
const [SINCE, UNTIL] = [START_DAY, START_DAY + 3];
const ZONES = ['UTC', 'Asia/Kathmandu', 'Pacific/Kiritimati', 'America/St_Johns', 'Pacific/Pago_Pago'];

interface Message {
  readonly id: string;
  readonly atMs: number;
  readonly owner: number;
  readonly session: string;
  readonly surface: string;
  readonly path: string;
  readonly isTest: boolean;
  /** Times of receipt of the message and its copies, in the order in which they are stored. */
  readonly receivedMs: readonly number[];
}
interface Link {
  readonly owner: number;
  /** Equal to the owner for an unlink. */
  readonly person: number;
}
type Step =
  | { readonly kind: 'messages'; readonly messages: readonly Message[] }
  | { readonly kind: 'link'; readonly link: Link }
  | { readonly kind: 'erasure'; readonly owner: number; readonly cutoffMs: number }
  | { readonly kind: 'merge' };

const OWNERS = [0, 1, 2];
const owner = fc.constantFrom(...OWNERS);
const message: fc.Arbitrary<Message> = fc
  .record({
    id: fc.constant('').map(() => randomUUID()),
    atMs: fc.nat(4 * 96).map((quarter) => START_MS + quarter * 15 * MINUTE_MS),
    owner,
    session: fc.constantFrom('', 'a', 'b'),
    surface: fc.constantFrom('web', 'unity'),
    path: fc.constantFrom('', '/arena', '/store/7', '/help'),
    isTest: fc.nat(9).map((number) => number === 0),
    leadMs: fc.constantFrom(-1000, -1000, -2 * DAY_MS, 5 * MINUTE_MS, 23 * HOUR_MS),
    copiesAfterMs: fc.array(fc.constantFrom(-500, 30_000, 10 * MINUTE_MS, 30 * HOUR_MS), { maxLength: 2 }),
  })
  .map(({ leadMs, copiesAfterMs, atMs, ...rest }) => {
    const first = atMs - leadMs;
    return { ...rest, atMs, receivedMs: [first, ...copiesAfterMs.map((ms) => first + ms)] };
  });
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({
        kind: fc.constant('messages' as const),
        messages: fc.array(message, { minLength: 1, maxLength: 6 }),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constant('link' as const), link: fc.record({ owner, person: owner }) }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('erasure' as const),
        owner,
        cutoffMs: fc.nat(4).map((day) => START_MS + day * DAY_MS),
      }),
    },
    { weight: 1, arbitrary: fc.constant({ kind: 'merge' as const }) },
  ),
  { minLength: 3, maxLength: 10 },
);

let database: OwnDatabase;
beforeAll(async () => {
  database = await openOwnDatabase();
});
afterAll(() => database.close());

const readRows = async (sql: string) =>
  (await database.query(`${sql} FORMAT JSONCompactEachRow`))
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as unknown[]);
const toText = (ms: number) => new Date(ms).toISOString().replace(/[TZ]/g, ' ').trim();
const toDay = (day: number) => toText(day * DAY_MS).slice(0, 10);
/** An identity key includes the environment, and its first half identifies it in the dictionary. */
const toKey = (environment: number, number: number) =>
  Buffer.from(`${environment}-${number}`.padStart(8, '0').padEnd(16, '0'));

async function insert(environment: number, messages: readonly Message[]): Promise<void> {
  const rows = messages.flatMap(({ receivedMs, ...each }) =>
    receivedMs.map((received, copy) => ({
      environment_id: `sessions-${environment}`,
      type: 'page',
      event_time: toText(each.atMs),
      received_at: toText(received),
      message_id: each.id,
      identity_key: toKey(environment, each.owner).toString(),
      session_id: each.session,
      surface: each.surface,
      page_path: each.path,
      test: each.isTest,
      kafka_offset: copy,
    })),
  );
  // Copies are in separate inserts and are stored again, as after a failed insert.
  for (const half of [rows.filter((_, index) => index % 2 === 0), rows])
    await database.query(`INSERT INTO events FORMAT JSONEachRow ${half.map((row) => JSON.stringify(row)).join(' ')}`);
}

/** The messages that remain after an erasure. A fence refuses erased messages that arrive later. */
const isErased = ({ atMs, owner: of, receivedMs }: Message, cutoffs: ReadonlyMap<number, number>) =>
  Math.min(atMs, ...receivedMs) <= (cutoffs.get(of) ?? Number.NEGATIVE_INFINITY);

async function erase(environment: number, number: number, cutoffMs: number): Promise<void> {
  const rows = openErasureRows(database.target);
  const batch = Buffer.from(randomUUID().replaceAll('-', ''), 'hex');
  try {
    const key = toKey(environment, number);
    await rows.putTargets(batch, [{ environmentId: `sessions-${environment}`, key, cutoffMs }]);
    await rows.sweep(batch);
    expect(await rows.findSurvivors(batch)).toEqual([]);
    await rows.dropTargets(batch);
  } finally {
    await rows.close();
  }
}

interface Stored {
  readonly messages: readonly Message[];
  readonly persons: ReadonlyMap<number, number>;
  readonly environment: number;
  readonly zone: string;
}

/** @param group divides the days in UTC with messages of a session and person into sessions */
function toSessions(
  { messages, persons, environment, zone }: Stored,
  group: (days: readonly number[]) => readonly (readonly number[])[],
) {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone: zone });
  const capped = ({ atMs, receivedMs }: Message) => Math.min(atMs, Math.min(...receivedMs) + MINUTE_MS);
  const dayOf = ({ atMs }: Message) => Math.floor(atMs / DAY_MS);
  const inSessions = messages.filter(({ session, isTest }) => session !== '' && !isTest);
  const groups = Map.groupBy(inSessions, (each) => `${each.session} ${persons.get(each.owner)}`);
  return [...groups.values()].flatMap((list) =>
    group([...new Set(list.map(dayOf))].sort((a, b) => a - b)).map((days) => {
      const parts = list.filter((each) => days.includes(dayOf(each)));
      const startedMs = Math.min(...parts.map(capped));
      const leadMs = Math.max(...parts.map((each) => each.atMs - capped(each)));
      const endedMs = Math.max(startedMs, Math.max(...parts.map(({ atMs }) => atMs)) - leadMs);
      const firstPages = parts.filter(({ path }) => path !== '').sort((a, b) => capped(a) - capped(b));
      const routes = firstPages
        .filter((each) => capped(each) === capped(firstPages[0]!))
        .map(({ path }) => path.replace('/7', '/:id'));
      const surfaces = parts.filter((each) => capped(each) === startedMs).map(({ surface }) => surface);
      return {
        row: [
          format.format(startedMs),
          parts[0]!.session,
          toKey(environment, persons.get(parts[0]!.owner)!).toString(),
          toText(startedMs),
          toText(endedMs),
          parts.length,
        ],
        // Any of these, if several events have the same time.
        surfaces,
        routes: routes.length === 0 ? [''] : routes,
      };
    }),
  );
}

const asText = (row: readonly unknown[]) => JSON.stringify(row);

function expectSessions(found: unknown[][], expected: ReturnType<typeof toSessions>): void {
  const sorted = expected.toSorted((a, b) => (asText(a.row) < asText(b.row) ? -1 : 1));
  const rows = found.toSorted((a, b) => (asText(a.slice(0, 6)) < asText(b.slice(0, 6)) ? -1 : 1));
  expect(rows.map((row) => row.slice(0, 6))).toEqual(sorted.map(({ row }) => row));
  for (const [index, { surfaces, routes }] of sorted.entries()) {
    expect(surfaces).toContain(rows[index]![6]);
    expect(routes).toContain(rows[index]![7]);
  }
}

const COLUMNS = `toString(day), session_id, toString(person_key), toString(started_at), toString(ended_at), toUInt32(events), surface, entry_route`;
/** A session has two successive days, of which the first follows a day without events. */
const inPairs = (days: readonly number[]) => days.filter((day) => !days.includes(day - 1)).map((day) => [day, day + 1]);

it('sessions equal those of the messages after copies, late events, links, unlinks, erasures and merges, in every time zone', async () => {
  let environment = 0;
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...ZONES), steps, async (zone, list) => {
      const id = `sessions-${++environment}`;
      await database.query(
        `INSERT INTO environment_settings (environment_id, time_zone, version) VALUES ('${id}', '${zone}', 1)`,
      );
      let messages: Message[] = [];
      const persons = new Map(OWNERS.map((number) => [number, number]));
      const cutoffs = new Map<number, number>();
      for (const [version, step] of list.entries()) {
        if (step.kind === 'messages') {
          const accepted = step.messages.filter((each) => !isErased(each, cutoffs));
          messages = [...messages, ...accepted];
          if (accepted.length > 0) await insert(environment, accepted);
        } else if (step.kind === 'link') {
          const { owner: from, person } = step.link;
          persons.set(from, person);
          await database.query(`INSERT INTO identity_overrides (environment_id, identity_key, person_key, linked_at, version)
            VALUES ('${id}', '${toKey(environment, from)}', '${toKey(environment, person)}', '2026-12-01 00:00:00', ${version})`);
        } else if (step.kind === 'erasure') {
          cutoffs.set(step.owner, Math.max(step.cutoffMs, cutoffs.get(step.owner) ?? 0));
          messages = messages.filter((each) => !isErased(each, cutoffs));
          await erase(environment, step.owner, step.cutoffMs);
        } else for (const table of ['events', 'session_days']) await database.query(`OPTIMIZE TABLE ${table} FINAL`);
      }
      const isInRange = ({ row }: { row: unknown[] }) =>
        String(row[0]) >= toDay(SINCE) && String(row[0]) < toDay(UNTIL);
      const stored = { messages, persons, environment, zone };
      const plain = toSessions(stored, inPairs);
      const read = (from: string) => readRows(`SELECT ${COLUMNS} FROM ${from}`);
      const where = `sessions WHERE environment_id = '${id}'`;
      expectSessions(await read(where), plain);
      const [some] = plain;
      if (some !== undefined)
        expectSessions(
          await read(`${where} AND day = '${some.row[0]}'`),
          plain.filter(({ row }) => row[0] === some.row[0]),
        );
      const isUtc = zone === 'UTC';
      const [first, end] = [SINCE - (isUtc ? 1 : 2), UNTIL + (isUtc ? 2 : 3)];
      const whole = (days: readonly number[]) => {
        const read = days.filter((day) => day >= first && day < end);
        return read.length === 0 ? [] : [read];
      };
      expectSessions(
        await read(`sessions_between(environment = '${id}', since = '${toDay(SINCE)}', until = '${toDay(UNTIL)}')`),
        toSessions(stored, whole).filter(isInRange),
      );
    }),
    { numRuns: runsOf({ quick: 6, all: 40 }) },
  );
});
