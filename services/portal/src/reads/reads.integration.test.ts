import { randomBytes, randomUUID } from 'node:crypto';
import { type PropertyFilter, toAnalystQuery } from '@playline/events';
import { quoteText } from '@playline/stores';
import { codePoint } from '@playline/testkit/code-point';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openTestReads, type TestReads, toSqlTime } from '../test/test-reads.ts';
import type { MessagePage, MessageSearch, PortalReads } from './index.ts';

const DAY_MS = 86_400_000;
const NOW_MS = Date.parse('2026-11-20T10:00:00Z');

const createEnvironmentId = () => `e-${randomBytes(4).toString('hex')}`;
const search = (environmentId: string, overrides: Partial<MessageSearch> = {}): MessageSearch => ({
  environmentId,
  sinceMs: NOW_MS - 400 * DAY_MS,
  untilMs: NOW_MS + 1,
  idAccess: 'raw ids',
  ...overrides,
});

let database: TestReads;
let reads: PortalReads;
beforeAll(async () => {
  database = await openTestReads();
  ({ reads } = database);
});
afterAll(() => database?.close());

const createEventRow = (environment: string, happenedMs: number, overrides: object = {}) => ({
  environment_id: environment,
  type: 'track',
  event_name: 'jump',
  event_time: toSqlTime(happenedMs),
  received_at: toSqlTime(happenedMs + 5),
  message_id: randomUUID(),
  surface: 'web',
  ...overrides,
});

it('reads.messages returns each message once, newest first, regardless of times and duplicates', async () => {
  const ages = fc.array(
    fc.record({
      ageMs: fc.constantFrom(0, 1, 1, 60_000, DAY_MS, 8 * DAY_MS, 300 * DAY_MS),
      duplicates: fc.constantFrom(1, 1, 5),
    }),
    { minLength: 1, maxLength: 16 },
  );
  await fc.assert(
    fc.asyncProperty(ages, fc.integer({ min: 1, max: 7 }), async (list, messagesMax) => {
      const environment = createEnvironmentId();
      const events = list.map(({ ageMs }) => createEventRow(environment, NOW_MS - ageMs));
      const toDuplicate = (event: object, number: number) => ({
        ...event,
        received_at: toSqlTime(NOW_MS + 1000 * number),
        kafka_offset: number,
      });
      for (let number = 0; number < 5; number++) {
        const rows = events
          .filter((_, index) => number < list[index]!.duplicates)
          .map((event) => (number === 0 ? event : toDuplicate(event, number)));
        if (rows.length > 0) await database.insert('events', rows);
      }
      const readIds: string[] = [];
      const times: number[] = [];
      for (let after: MessagePage['next'] | undefined; after !== null; ) {
        const page: MessagePage = await reads.messages(search(environment, { messagesMax, ...(after && { after }) }));
        readIds.push(...page.lines.map(({ messageId }) => messageId));
        times.push(...page.lines.map(({ happenedMs }) => happenedMs));
        after = page.next;
      }
      expect([...readIds].sort()).toEqual(events.map(({ message_id }) => message_id).sort());
      expect(times).toEqual([...times].sort((a, b) => b - a));
    }),
    { numRuns: runsOf({ quick: 3, all: 8 }) },
  );
}, 120_000);

it('reads.messages applies each filter and returns only messages from the given environment', async () => {
  const [environment, key] = [createEnvironmentId(), 'k'.repeat(16)];
  const [first, second] = [
    createEventRow(environment, NOW_MS, { identity_key: key, user_id: 'player-7' }),
    createEventRow(environment, NOW_MS, { type: 'page', event_name: '', surface: 'unity', test: true }),
  ];
  await database.insert('events', [first, second, createEventRow(`${environment}-2`, NOW_MS)]);
  const found = async (filter: Partial<MessageSearch>) =>
    (await reads.messages(search(environment, filter))).lines.map(({ messageId }) => messageId);
  const identityId = Buffer.from(key).toString('hex');
  for (const filter of [
    { type: 'track' },
    { name: 'jump' },
    { surface: 'web' },
    { test: false },
    { identityIds: [identityId] },
  ])
    expect([filter, await found(filter)]).toEqual([filter, [first.message_id]]);
  expect(await found({ test: true })).toEqual([second.message_id]);
  expect(await found({ name: "jump' OR '1' = '1" })).toEqual([]);
});

it('reads.messages compares a property by its JSON type, and integers without loss of digits', async () => {
  const environment = createEnvironmentId();
  const values = {
    text: '"12"',
    int: '12',
    double: '12.50',
    whole: '3.0',
    id: '76561198000000001',
    yes: 'true',
    list: '[1]',
    none: 'null',
  };
  const rows = Object.entries(values).map(([name, json]) =>
    createEventRow(environment, NOW_MS, { event_name: name, properties: `{"it's":${json}}` }),
  );
  await database.insert('events', [...rows, createEventRow(environment, NOW_MS, { event_name: 'absent' })]);
  const found = async (operator: PropertyFilter['operator'], value: string) => {
    const property = { name: "it's", operator, value };
    return (await reads.messages(search(environment, { property }))).lines.map(({ name }) => name).toSorted();
  };
  expect(await found('exists', '')).toEqual(Object.keys(values).toSorted());
  expect(await found('eq', '12')).toEqual(['int', 'text']);
  expect(await found('eq', '12.5')).toEqual(['double']);
  expect(await found('eq', '3.0')).toEqual(['whole']);
  expect(await found('eq', '76561198000000002')).toEqual([]);
  expect(await found('eq', 'true')).toEqual(['yes']);
  expect(await found('eq', '')).toEqual([]);
  expect(await found('ne', '12')).toEqual(['double', 'id', 'list', 'none', 'whole', 'yes']);
  expect(await found('gt', '12')).toEqual(['double', 'id']);
  expect(await found('lt', '12.5')).toEqual(['int', 'whole']);
});

it.each(['raw ids', 'masked ids'] as const)(
  'with %s, the query for analysts returns the messages of each page, and the counts add up to them',
  async (idAccess) => {
    const [environment, key] = [createEnvironmentId(), 'k'.repeat(16)];
    const rows = Array.from({ length: 12 }, (_, index) =>
      createEventRow(environment, NOW_MS - 1_000 * (index >> 1), {
        test: index % 4 === 3,
        surface: ['web', 'unity'][index % 2],
        properties: `{"level":${index}}`,
        ...(index % 3 === 0 && { anonymous_key: key }),
      }),
    );
    await database.insert('events', rows);
    await database.insert(
      'events',
      rows.map((row) => ({ ...row, kafka_offset: 7 })),
    );
    const settings = { environment_id: environment, time_zone: 'UTC', safe_properties: ['level'], version: 1 };
    await database.insert('environment_settings', [settings]);
    const property = { name: 'level', operator: 'gt', value: '3' } as const;
    const byIdentity = { test: false, identityIds: [Buffer.from(key).toString('hex')] };
    for (const filter of [
      { test: false },
      { test: true },
      { test: false, surface: 'web', name: 'jump', type: 'track', sinceMs: NOW_MS - 4_000, untilMs: NOW_MS },
      { test: false, property },
      ...(idAccess === 'raw ids' ? [byIdentity] : []),
    ]) {
      let total = 0;
      for (let after: MessagePage['next'] | undefined; after !== null; ) {
        const page = search(environment, { idAccess, messagesMax: 3, after, ...filter });
        const { lines: messages, next } = await reads.messages(page);
        const copied: unknown[] = [];
        for await (const row of database.query(toAnalystQuery({ ...page, test: filter.test }))) copied.push(row.at(-1));
        expect([filter, copied]).toEqual([filter, messages.map(({ messageId }) => messageId)]);
        total += copied.length;
        after = next;
      }
      const counts = await reads.messageCounts({ ...search(environment, filter), stepMs: 1_000 });
      expect(total).toBeGreaterThan(0);
      expect([filter, counts.reduce((sum, { messages }) => sum + messages, 0)]).toEqual([filter, total]);
    }
  },
);

it('reads.messages finds the messages that contain a person in any field', async () => {
  const environment = createEnvironmentId();
  const [ada, bob] = ['a'.repeat(16), 'b'.repeat(16)];
  const events = [
    createEventRow(environment, NOW_MS, { identity_key: ada, user_id: 'ada' }),
    createEventRow(environment, NOW_MS - 1, { identity_key: bob, anonymous_key: ada }),
    createEventRow(environment, NOW_MS - 2 * DAY_MS, { type: 'alias', event_name: '', from_key: ada, to_key: bob }),
    createEventRow(environment, NOW_MS - 3 * DAY_MS, { type: 'alias', event_name: '', from_key: bob, to_key: ada }),
  ];
  const others = [
    createEventRow(environment, NOW_MS, { identity_key: bob }),
    createEventRow(`${environment}-2`, NOW_MS, { identity_key: ada }),
  ];
  await database.insert('events', [...events, ...others]);
  const identityIds = [Buffer.from(ada).toString('hex'), 'cd'.repeat(16)];
  const found: string[] = [];
  for (let after: MessagePage['next'] | undefined; after !== null; ) {
    const page: MessagePage = await reads.messages(
      search(environment, { identityIds, messagesMax: 1, ...(after && { after }) }),
    );
    found.push(...page.lines.map(({ messageId }) => messageId));
    after = page.next;
  }
  expect(found).toEqual(events.map(({ message_id }) => message_id));
  const foundForPerson = async (filter: Partial<MessageSearch>) =>
    (await reads.messages(search(environment, { identityIds, ...filter }))).lines.map(({ messageId }) => messageId);
  expect(await foundForPerson({ name: 'jump' })).toEqual(found.slice(0, 2));
  expect(await foundForPerson({ type: 'alias', surface: 'web', test: false })).toEqual(found.slice(2));
  for (const none of [{ type: 'page' }, { surface: 'unity' }, { test: true }, { type: "' OR 1 = 1 --" }])
    expect([none, await foundForPerson(none)]).toEqual([none, []]);
  expect((await reads.messages(search(environment, { identityIds: [] }))).lines).toEqual([]);
});

it('reads with masked ids return shortened ids and no text supplied by the client', async () => {
  const environment = createEnvironmentId();
  const secret = 'RAWID';
  const event = createEventRow(environment, NOW_MS, {
    user_id: `${secret}-player`,
    anonymous_id: `${secret}-visitor`,
    device_id: secret,
    page_url: secret,
    properties: `{"friend":"${secret}","level":12345678901234567890,"it's":[1]}`,
    traits: `{"email":"${secret}"}`,
    user_agent: secret,
    trace_id: secret,
  });
  await database.insert('events', [event]);
  const { lines: messages } = await reads.messages(search(environment, { idAccess: 'masked ids' }));
  const byId = { environmentId: environment, messageId: event.message_id, safeProperties: [] };
  const found = await reads.message({ ...byId, idAccess: 'masked ids' });
  expect(messages[0]).toMatchObject({ userId: 'RA…', anonymousId: 'RA…' });
  expect(found).toHaveLength(1);
  expect(JSON.stringify([messages, found])).not.toContain(secret);
  const raw = await reads.messages(search(environment));
  expect(raw.lines).toMatchObject([{ userId: `${secret}-player` }]);
  const [safe] = await reads.message({ ...byId, idAccess: 'masked ids', safeProperties: ["it's", 'level'] });
  expect(safe?.properties).toBe('{"level":12345678901234567890,"it\'s":[1]}');
  expect(await reads.message({ ...byId, idAccess: 'raw ids' })).toMatchObject([
    {
      userId: `${secret}-player`,
      pageUrl: secret,
      properties: expect.stringContaining(secret),
      traits: `{"email":"${secret}"}`,
    },
  ]);
  expect(await reads.message({ ...byId, environmentId: `${environment}-2`, idAccess: 'raw ids' })).toEqual([]);
});

it('causes of rejections have counts, a trend and sample trace ids, and errors are found by trace id', async () => {
  const environment = createEnvironmentId();
  const trace = randomBytes(16).toString('hex');
  const row = {
    environment_id: environment,
    code: 'INVALID_ENUM',
    field: 'surface',
    library: 'web',
    library_version: '1',
  };
  const rejectionAt = (offset: number, ms: number, overrides = {}) => ({
    ...row,
    received_at: toSqlTime(ms),
    kafka_offset: offset,
    ...overrides,
  });
  const rows = [rejectionAt(1, NOW_MS - DAY_MS), rejectionAt(2, NOW_MS, { trace_id: trace })];
  await database.insert('message_rejections', rows);
  // Simulates a retry, which inserts the block again.
  await database.insert('message_rejections', rows);
  const range = { environmentId: environment, sinceMs: NOW_MS - 2 * DAY_MS, untilMs: NOW_MS + 1, stepS: 86_400 };
  const client = { code: 'INVALID_ENUM', field: 'surface', library: 'web', libraryVersion: '1' };
  const { causes, ...totals } = await reads.rejections(range);
  expect(causes).toMatchObject([
    {
      ...client,
      errors: 2,
      requests: 2,
      surfaces: [''],
      firstMs: NOW_MS - DAY_MS,
      lastMs: NOW_MS,
      traceIds: [trace, ''],
      trend: new Map([
        [1, 1],
        [2, 1],
      ]),
    },
  ]);
  const more = Array.from({ length: 201 }, (_, index) => rejectionAt(3 + index, NOW_MS, { field: `f${index}` }));
  await database.insert('message_rejections', more);
  const all = await reads.rejections(range);
  const totalTrend = (today: number) =>
    new Map([
      [1, 1],
      [2, today],
    ]);
  expect(totals).toEqual({ totalCauses: 1, totalErrors: 2, totalTrend: totalTrend(1) });
  expect(all).toMatchObject({ totalCauses: 202, totalErrors: 203, totalTrend: totalTrend(202) });
  expect(all.causes).toHaveLength(200);
  expect(await reads.rejections({ ...range, code: 'OTHER' })).toMatchObject({ causes: [], totalErrors: 0 });
  const traced = { environmentId: environment, traceId: trace };
  expect(await reads.rejectionsOfTrace(traced)).toEqual([{ ...client, surface: '', receivedMs: NOW_MS }]);
  expect(await reads.rejectionsOfTrace({ ...traced, environmentId: `${environment}-2` })).toEqual([]);
  expect(await reads.rejectionsOfTrace({ ...traced, traceId: '' })).toEqual([]);
});

it('aborting the signal cancels a read', async () => {
  const signal = AbortSignal.abort();
  await expect(reads.erasures(createEnvironmentId(), { signal })).rejects.toThrow(/abort/i);
});

it('an erasure without a receipt is waiting, and a receipt is visible only in its environment', async () => {
  const environment = createEnvironmentId();
  const [waiting, done] = [randomUUID(), randomUUID()];
  const common = { environment_id: environment, cutoff_at: toSqlTime(NOW_MS) };
  await database.insert('erasure_requests', [
    { ...common, erasure_id: waiting, requested_at: toSqlTime(NOW_MS) },
    { ...common, erasure_id: done, requested_at: toSqlTime(NOW_MS - DAY_MS) },
  ]);
  const now = toSqlTime(NOW_MS);
  const times = {
    accepted_at: toSqlTime(NOW_MS - DAY_MS),
    fenced_at: now,
    visibly_erased_at: now,
    log_expires_at: now,
  };
  const counts = { closure_count: 3, deleted: { 'clickhouse.events': 7 } };
  await database.insert('erasure_receipts', [{ ...common, ...times, ...counts, erasure_id: done }]);
  const erasures = await reads.erasures(environment);
  expect(erasures.map(({ erasureId, state, identities }) => [erasureId, state, identities])).toEqual([
    [waiting, 'waiting', null],
    [done, 'erased', 3],
  ]);
  expect(erasures[0]!.fencedMs).toBeNull();
  expect(erasures[1]).toMatchObject({ fencedMs: NOW_MS, physicallyErasedMs: null, logExpiredMs: null });
  const receipt = await reads.receipt({ environmentId: environment, erasureId: done });
  expect(receipt).toMatchObject({ erasureId: done, closureCount: 3, fencedAt: new Date(NOW_MS).toISOString() });
  expect(receipt).toMatchObject({ deleted: { 'clickhouse.events': '7' }, physicallyErasedAt: null });
  expect(await reads.receipt({ environmentId: `${environment}-2`, erasureId: done })).toBeNull();
  expect(await reads.receipt({ environmentId: environment, erasureId: waiting })).toBeNull();
});

it('an erasure without a receipt shows what the eraser has found, fenced and deleted so far', async () => {
  const [environment, erasureId, key] = [createEnvironmentId(), randomUUID(), randomBytes(8).toString('hex')];
  const erasure = { environmentId: environment, erasureId };
  const common = { environment_id: environment, erasure_id: erasureId, cutoff_at: toSqlTime(NOW_MS) };
  expect(await reads.erasure(erasure)).toBeNull();
  await database.insert('erasure_requests', [{ ...common, requested_at: toSqlTime(NOW_MS) }]);
  const requested = { state: 'waiting', requestedMs: NOW_MS, identities: null, deleted: null, fencedMs: null };
  expect(await reads.erasure(erasure)).toMatchObject(requested);
  const progress = { ...common, batch_id: randomUUID(), closure_keys: [key, 'another person k'] };
  await database.insert('erasure_progress', [{ ...progress, deleted: { 'clickhouse.events': 7, 'redis.i': 2 } }]);
  const found = { ...requested, identities: 2, deleted: 9 };
  expect(await reads.erasure(erasure)).toMatchObject(found);
  await database.insert('erasure_fences', [{ ...common, identity_key: key, fenced_at: toSqlTime(NOW_MS + 5) }]);
  expect(await reads.erasure(erasure)).toMatchObject({ ...found, fencedMs: NOW_MS + 5 });
  expect(await reads.erasure({ ...erasure, environmentId: `${environment}-2` })).toBeNull();
});

it('reads.openErasures returns the oldest open erasure and the number of open erasures per environment', async () => {
  const [environment = '', other = '', completed = '', unrelated = ''] = Array.from({ length: 4 }, createEnvironmentId);
  const requestOf = (id: string, ageMs: number, erasureId = randomUUID()) => ({
    environment_id: id,
    erasure_id: erasureId,
    cutoff_at: toSqlTime(NOW_MS),
    requested_at: toSqlTime(NOW_MS - ageMs),
  });
  const [oldest, closed, receipted] = [randomUUID(), randomUUID(), randomUUID()];
  const requests = [
    ...[requestOf(environment, 1_000), requestOf(environment, 5_000, oldest), requestOf(environment, 9_000, closed)],
    ...[requestOf(other, 3_000, closed), requestOf(`${environment}-2`, 99_000), requestOf(completed, 4_000, receipted)],
  ];
  await database.insert('erasure_requests', requests);
  // Inserted separately, so that duplicates exist until ClickHouse merges them.
  const duplicates = requests.map((request) => ({ ...request, trace_id: 'duplicate' }));
  await database.insert('erasure_requests', duplicates);
  const times = { accepted_at: toSqlTime(NOW_MS), fenced_at: toSqlTime(NOW_MS), visibly_erased_at: toSqlTime(NOW_MS) };
  const receiptOf = (id: string, erasureId: string) => ({
    environment_id: id,
    erasure_id: erasureId,
    cutoff_at: toSqlTime(NOW_MS),
    ...times,
    closure_count: 1,
    log_expires_at: toSqlTime(NOW_MS),
  });
  await database.insert('erasure_receipts', [
    receiptOf(environment, closed),
    receiptOf(completed, receipted),
    receiptOf(unrelated, oldest),
  ]);
  expect(await reads.openErasures([environment, completed])).toEqual([
    { environmentId: environment, count: 2, oldestMs: NOW_MS - 5_000, oldestId: oldest },
  ]);
  expect(await reads.openErasures([other])).toEqual([
    { environmentId: other, count: 1, oldestMs: NOW_MS - 3_000, oldestId: closed },
  ]);
  const both = await reads.openErasures([other, environment, unrelated]);
  expect(both.map(({ environmentId, oldestId }) => [environmentId, oldestId])).toEqual([
    [environment, oldest],
    [other, closed],
  ]);
  expect(await reads.openErasures([])).toEqual([]);
});

it('reads.audit returns the audit entries of a project, newest first', async () => {
  const project = createEnvironmentId();
  const entry = { project_id: project, kind: 'entry', action: 'session.create', actor: 'ada', detail: '{"n":"1"}' };
  await database.insert('audit_log', [
    { ...entry, entry_id: 'a', happened_at: toSqlTime(NOW_MS), object: 'old' },
    { ...entry, entry_id: 'b', happened_at: toSqlTime(NOW_MS + 1), object: 'new' },
    { ...entry, entry_id: 'c', project_id: `${project}-2`, happened_at: toSqlTime(NOW_MS), object: 'other' },
  ]);
  const audit = { projectId: project, sinceMs: NOW_MS - 1, untilMs: NOW_MS + 2, entriesMax: 10 };
  expect((await reads.audit(audit)).map(({ object }) => object)).toEqual(['new', 'old']);
  expect(await reads.audit({ ...audit, entriesMax: 1 })).toMatchObject([{ object: 'new', detail: '{"n":"1"}' }]);
});

it('ClickHouse parses every string that quoteText has quoted as one literal', async () => {
  const texts = fc.sample(fc.string({ unit: codePoint, maxLength: 30 }), 200);
  const rows: (readonly unknown[])[] = [];
  for await (const row of database.query(`SELECT ${texts.map((text) => `hex(${quoteText(text)})`)}`)) rows.push(row);
  expect(rows).toEqual([texts.map((text) => Buffer.from(text).toString('hex').toUpperCase())]);
});
