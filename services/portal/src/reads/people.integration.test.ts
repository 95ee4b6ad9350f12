import { randomBytes, randomUUID } from 'node:crypto';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openTestReads, type TestReads, toSqlTime } from '../test/test-reads.ts';
import type { TimelineEntry, TimelinePart, TimelinePosition } from './index.ts';

const DAY_MS = 86_400_000;
const NOW_MS = Date.now() - 1_000;
const [ADA, BOB] = ['a'.repeat(16), 'b'.repeat(16)] as const;
const toHex = (key: string) => Buffer.from(key).toString('hex');
const createEnvironmentId = () => `e-${randomBytes(4).toString('hex')}`;

let database: TestReads;
beforeAll(async () => {
  database = await openTestReads();
});
afterAll(() => database?.close());

const toEvent = (environment: string, key: string, ms: number, overrides: object = {}) => ({
  environment_id: environment,
  type: 'track',
  event_name: 'jump',
  event_time: toSqlTime(ms),
  received_at: toSqlTime(ms + 5),
  message_id: randomUUID(),
  surface: 'web',
  identity_key: key,
  ...overrides,
});
let offset = 0;
const toLink = (environment: string, ms: number, overrides: object = {}) => ({
  environment_id: environment,
  link_offset: offset++,
  message_id: randomUUID(),
  link: 'identify',
  a_key: ADA,
  a_kind: 'anonymous',
  b_key: BOB,
  b_kind: 'steam',
  outcome: 'linked',
  received_at: toSqlTime(ms),
  ...overrides,
});
const toConsent = (environment: string, ms: number) => ({
  environment_id: environment,
  identity_key: ADA,
  status: 'full',
  source: 'banner',
  received_at: toSqlTime(ms),
  kafka_offset: offset++,
});

async function readAll(environmentId: string, show: TimelinePart, linesMax: number) {
  const search = { environmentId, identityIds: [toHex(ADA), toHex(BOB)], show, linesMax };
  const pages: (readonly TimelineEntry[])[] = [];
  for (let after: TimelinePosition | null | undefined = undefined; after !== null; ) {
    const page: { lines: readonly TimelineEntry[]; next: TimelinePosition | null } = await database.reads.timeline({
      ...search,
      after,
    });
    pages.push(page.lines);
    after = page.next;
  }
  return pages;
}

it('reads.timeline returns each message, link and consent once, newest first, regardless of times, copies and page size', async () => {
  const entries = fc.array(
    fc.record({
      entry: fc.constantFrom('event', 'event', 'link', 'consent'),
      ageMs: fc.constantFrom(0, 0, 1, 60_000, DAY_MS, 8 * DAY_MS, 60 * DAY_MS),
      copies: fc.constantFrom(1, 1, 2),
      key: fc.constantFrom(ADA, BOB),
    }),
    { minLength: 1, maxLength: 16 },
  );
  await fc.assert(
    fc.asyncProperty(entries, fc.integer({ min: 2, max: 7 }), async (list, linesMax) => {
      const environment = createEnvironmentId();
      const rows = { event: [] as object[], link: [] as object[], consent: [] as object[] };
      for (const { entry, ageMs, copies, key } of list) {
        const ms = NOW_MS - ageMs;
        if (entry === 'event') {
          const event = toEvent(environment, key, ms);
          rows.event.push(event);
          if (copies === 2) rows.event.push({ ...event, received_at: toSqlTime(NOW_MS + 9), kafka_offset: 7 });
        } else if (entry === 'link') rows.link.push(toLink(environment, ms));
        else rows.consent.push(toConsent(environment, ms));
      }
      for (const [table, inserted] of Object.entries({
        events: rows.event,
        identity_links: rows.link,
        consent_log: rows.consent,
      }))
        if (inserted.length > 0) await database.insert(table, inserted);
      const pages = await readAll(environment, '', linesMax);
      const found = pages.flat();
      expect(found.map(({ entry, happenedMs }) => `${happenedMs} ${entry}`).sort()).toEqual(
        list.map(({ entry, ageMs }) => `${NOW_MS - ageMs} ${entry}`).sort(),
      );
      expect(new Set(found.map(({ id }) => id)).size).toBe(list.length);
      const times = found.map(({ happenedMs }) => happenedMs);
      expect(times).toEqual([...times].sort((a, b) => b - a));
      for (const page of pages.slice(0, -1)) expect(page).toHaveLength(linesMax);
    }),
    { numRuns: runsOf({ quick: 3, all: 8 }) },
  );
}, 120_000);

it('reads.timeline returns the parts that were requested, without aliases, unchanged links and other people', async () => {
  const environment = createEnvironmentId();
  const properties = '{"level":12}';
  const event = toEvent(environment, ADA, NOW_MS, { properties, user_id: 'ada "x"', test: true });
  await database.insert('events', [
    event,
    toEvent(environment, ADA, NOW_MS, { type: 'alias', event_name: '' }),
    toEvent(environment, 'c'.repeat(16), NOW_MS),
    toEvent(`${environment}-2`, ADA, NOW_MS),
  ]);
  await database.insert('identity_links', [
    toLink(environment, NOW_MS - 1, { outcome: 'refused', reason: 'shared_device' }),
    toLink(environment, NOW_MS - 1, { outcome: 'unchanged' }),
  ]);
  await database.insert('consent_log', [toConsent(environment, NOW_MS - 2)]);
  const found = async (show: TimelinePart) => (await readAll(environment, show, 10)).flat();
  const all = await found('');
  expect(all).toMatchObject([
    { entry: 'event', what: 'track', name: 'jump', origin: 'web', identityId: toHex(ADA), messageId: event.message_id },
    {
      entry: 'link',
      what: 'identify',
      name: 'refused',
      origin: 'shared_device',
      otherId: toHex(BOB),
      otherKind: 'steam',
    },
    { entry: 'consent', what: 'full', origin: 'banner', kind: 'anonymous' },
  ]);
  expect(JSON.parse(all[0]!.detail)).toMatchObject({ properties: { level: 12 }, userId: 'ada "x"', test: true });
  expect(await found('events')).toEqual(all.slice(0, 1));
  expect(await found('identity')).toEqual(all.slice(1, 2));
  expect(await found('consent')).toEqual(all.slice(2));
  expect(await found('history')).toEqual(all.slice(1));
});

it('reads.profile combines the identities of a person and counts messages instead of copies', async () => {
  const environment = createEnvironmentId();
  const event = toEvent(environment, ADA, NOW_MS - DAY_MS, { session_id: 's1', surface: 'unity' });
  const search = { environmentId: environment, identityIds: [toHex(ADA), toHex(BOB)] };
  expect(await database.reads.profile(search)).toBeNull();
  await database.insert('events', [
    event,
    toEvent(environment, BOB, NOW_MS, { type: 'identify', event_name: '', session_id: 's2', traits: '{"plan":"pro"}' }),
  ]);
  await database.insert('events', [{ ...event, received_at: toSqlTime(NOW_MS), kafka_offset: 9 }]);
  expect(await database.reads.profile(search)).toEqual({
    firstSeenMs: NOW_MS - DAY_MS,
    lastSeenMs: NOW_MS,
    firstSurface: 'unity',
    traits: '{"plan":"pro"}',
    lastSurface: 'web',
    events: 2,
    sessions: 2,
  });
});

it('reads.ids returns identities that own an event or that a link or a consent names, in this environment only', async () => {
  const environment = createEnvironmentId();
  const keys = ['d', 'e', 'f', 'g', 'h'].map((character) => character.repeat(16));
  const [owner = '', linked = '', refused = '', consenting = ''] = keys;
  await database.insert('events', [toEvent(environment, owner, NOW_MS, { user_key: owner, user_id: 'ada' })]);
  const override = {
    environment_id: environment,
    identity_key: linked,
    person_key: owner,
    linked_at: toSqlTime(NOW_MS),
  };
  await database.insert('identity_overrides', [override]);
  await database.insert('identity_links', [toLink(environment, NOW_MS, { a_key: refused, outcome: 'refused' })]);
  await database.insert('consent_log', [{ ...toConsent(environment, NOW_MS), identity_key: consenting }]);
  const identityIds = keys.map(toHex);
  const search = { identityIds, idAccess: 'raw ids' } as const;
  const known = await database.reads.ids({ ...search, environmentId: environment });
  expect([...known].sort()).toEqual(identityIds.slice(0, 4).map((id, index) => [id, index === 0 ? 'ada' : '']));
  expect(await database.reads.ids({ ...search, environmentId: `${environment}-2` })).toEqual(new Map());
});
