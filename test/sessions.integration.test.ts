import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  type AnalystModel,
  capped,
  DAY_MS,
  dayIn,
  type Message,
  openAnalystModel,
  START_DAY,
  type Stored,
  steps,
  toDay,
  toKey,
  toText,
  ZONES,
} from './analyst-model.ts';

// Compares the views of sessions with sessions that are computed from a list of messages, without SQL and without stored states.

const [SINCE, UNTIL] = [START_DAY, START_DAY + 3];

let model: AnalystModel;
beforeAll(async () => {
  model = await openAnalystModel();
});
afterAll(() => model.close());

/** @param group divides the days in UTC with messages of a session and person into sessions */
function toSessions(
  { messages, persons, environment }: Stored,
  zone: string,
  group: (days: readonly number[]) => readonly (readonly number[])[],
) {
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
          dayIn(zone, startedMs),
          parts[0]!.session,
          toKey(environment, persons.get(parts[0]!.owner)!),
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

it('sessions equal those of the messages after copies, late events, links, unlinks, erasures and merges, in every time zone', {
  timeout: runsOf({ quick: 120_000, all: 300_000 }),
}, async () => {
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...ZONES), steps, async (zone, list) => {
      const stored = await model.store(zone, list);
      const isInRange = ({ row }: { row: unknown[] }) =>
        String(row[0]) >= toDay(SINCE) && String(row[0]) < toDay(UNTIL);
      const plain = toSessions(stored, zone, inPairs);
      const read = (from: string) => model.readRows(`SELECT ${COLUMNS} FROM ${from}`);
      const where = `sessions WHERE environment_id = '${stored.environment}'`;
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
        await read(
          `sessions_between(environment = '${stored.environment}', since = '${toDay(SINCE)}', until = '${toDay(UNTIL)}')`,
        ),
        toSessions(stored, zone, whole).filter(isInRange),
      );
    }),
    { numRuns: runsOf({ quick: 6, all: 40 }) },
  );
});
