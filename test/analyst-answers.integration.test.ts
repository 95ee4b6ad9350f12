import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  type AnalystModel,
  capped,
  dayIn,
  type Message,
  MINUTE_MS,
  openAnalystModel,
  receivedFirst,
  type Stored,
  steps,
  toKey,
  toText,
  USER,
  USER_ID,
  ZONES,
} from './analyst-model.ts';

// Compares the views with answers that are computed from a list of messages. Queries of rows (counts by property, funnels, paths)
// and of active days (retention, stickiness) are right if these views are. For sessions and the numbers of events, see
// sessions.integration.test.ts and event-days.integration.test.ts.

let model: AnalystModel;
beforeAll(async () => {
  model = await openAnalystModel();
});
afterAll(() => model.close());

type Rows = readonly (readonly unknown[])[];
const sorted = (rows: Rows) => rows.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));

const ROW =
  'toString(message_id), event_name, toString(event_time), toString(received_at), session_id, page_path, properties';
const toRow = (message: Message) => [
  message.id,
  message.name,
  toText(message.atMs),
  toText(receivedFirst(message)),
  message.session,
  message.path,
  JSON.stringify({ score: message.score }),
];

async function expectRows({ environment, messages, persons }: Stored): Promise<void> {
  const shown = messages.filter(({ isTest }) => !isTest);
  const personOf = ({ owner }: Message) => toKey(environment, persons.get(owner)!);
  const read = (where: string) =>
    model.readRows(
      `SELECT ${ROW}, toString(person_key) FROM analysis_events_raw WHERE environment_id = '${environment}' ${where}`,
    );
  const toRows = (list: readonly Message[]) => sorted(list.map((message) => [...toRow(message), personOf(message)]));
  expect(sorted(await read(''))).toEqual(toRows(shown));
  const [first] = shown;
  if (first === undefined) return;
  expect(sorted(await read(`AND message_id = '${first.id}'`))).toEqual(
    toRows(shown.filter(({ id }) => id === first.id)),
  );
  const matches = shown.filter(({ name, score }) => name === 'match' && score > 4);
  expect(sorted(await read("AND event_name = 'match' AND JSONExtractInt(properties, 'score') > 4"))).toEqual(
    toRows(matches),
  );
}

async function expectDays({ environment, messages, persons }: Stored, zone: string): Promise<void> {
  const shown = messages.filter(({ isTest }) => !isTest);
  const days = shown.map((each) =>
    JSON.stringify([dayIn(zone, each.atMs), each.name, toKey(environment, persons.get(each.owner)!)]),
  );
  const found = await model.readRows(
    `SELECT DISTINCT toString(day), event_name, toString(person_key) FROM person_days WHERE environment_id = '${environment}'`,
  );
  expect(found.map((row) => JSON.stringify(row)).sort()).toEqual([...new Set(days)].sort());
}

/** Of several messages at the same time, the one that was received first counts. */
function toFirstTouches(list: readonly Message[]): string[] {
  const pages = list.filter(({ name }) => name === '');
  const candidates = pages.length > 0 ? pages : list;
  const least = (of: (message: Message) => number, all: readonly Message[]) =>
    all.filter((each) => of(each) === Math.min(...all.map(of)));
  return least(
    receivedFirst,
    least(({ atMs }) => atMs, candidates),
  ).map(({ path, surface }) => `${surface} https://play.example.com${path}`);
}

async function expectPersons({ environment, messages, persons }: Stored, zone: string): Promise<void> {
  const found =
    await model.readRows(`SELECT toString(person_key), toUInt32(identities), toString(first_seen_at), toString(first_seen_day),
    concat(first_surface, ' ', first_page_url), toUnixTimestamp64Milli(last_seen_at)
    FROM persons_raw WHERE environment_id = '${environment}' ORDER BY 1`);
  const groups = Map.groupBy(
    messages.filter(({ isTest }) => !isTest),
    ({ owner }) => toKey(environment, persons.get(owner)!),
  );
  const expected = [...groups].sort(([a], [b]) => (a < b ? -1 : 1));
  expect(found.map((row) => row.slice(0, 4))).toEqual(
    expected.map(([person, list]) => {
      const firstMs = Math.min(...list.map(capped));
      return [person, new Set(list.map(({ owner }) => owner)).size, toText(firstMs), dayIn(zone, firstMs)];
    }),
  );
  for (const [index, [, list]] of expected.entries()) {
    const [touch, lastMs] = found[index]!.slice(4);
    expect(toFirstTouches(list)).toContain(touch);
    expect(Number(lastMs)).toBeGreaterThanOrEqual(Math.max(...list.map(capped)));
    // A copy received later of a message from a clock that is ahead may raise this time.
    const withCopies = ({ atMs, receivedMs }: Message) => Math.min(atMs, Math.max(...receivedMs) + MINUTE_MS);
    expect(Number(lastMs)).toBeLessThanOrEqual(Math.max(...list.map(withCopies)));
  }
}

async function expectTimelines({ environment, messages, persons }: Stored): Promise<void> {
  const read = async (from: string) => sorted(await model.readRows(`SELECT ${ROW} FROM ${from}`));
  const toRows = (isMember: (owner: number) => boolean) =>
    sorted(messages.filter(({ owner }) => isMember(owner)).map(toRow));
  for (const person of persons.keys()) {
    const id = Buffer.from(toKey(environment, person)).toString('hex');
    expect(await read(`person_timeline(environment = '${environment}', person = '${id}')`)).toEqual(
      toRows((owner) => owner === person || persons.get(owner) === person),
    );
  }
  const isKnown = messages.some(({ owner }) => owner === USER);
  expect(await read(`user_timeline(environment = '${environment}', user = '${USER_ID}')`)).toEqual(
    toRows((owner) => isKnown && persons.get(owner) === persons.get(USER)),
  );
}

it('rows, active days, persons and timelines equal those of the messages after copies, late events, links, unlinks, erasures and merges', async () => {
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...ZONES), steps, async (zone, list) => {
      const stored = await model.store(zone, list);
      await expectRows(stored);
      await expectDays(stored, zone);
      await expectPersons(stored, zone);
      await expectTimelines(stored);
    }),
    { numRuns: runsOf({ quick: 6, all: 25 }) },
  );
});
