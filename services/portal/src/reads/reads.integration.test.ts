import { randomBytes, randomUUID } from 'node:crypto';
import { quoteText } from '@playline/stores';
import { codePoint } from '@playline/testkit/code-point';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type OwnReads, openOwnReads, toSqlTime } from '../test/own-reads.ts';
import type { MessageSearch, PortalReads } from './index.ts';

const DAY_MS = 86_400_000;
const NOW_MS = Date.parse('2026-11-20T10:00:00Z');

const environmentOf = () => `e-${randomBytes(4).toString('hex')}`;
const search = (environmentId: string, over: Partial<MessageSearch> = {}): MessageSearch => ({
  environmentId,
  sinceMs: NOW_MS - 400 * DAY_MS,
  untilMs: NOW_MS + 1,
  idAccess: 'raw ids',
  ...over,
});

let own: OwnReads;
let reads: PortalReads;
beforeAll(async () => {
  own = await openOwnReads();
  ({ reads } = own);
});
afterAll(() => own?.close());

describe('the search of messages', () => {
  const eventOf = (environment: string, happenedMs: number, over: object = {}) => ({
    environment_id: environment,
    type: 'track',
    event_name: 'jump',
    event_time: toSqlTime(happenedMs),
    received_at: toSqlTime(happenedMs + 5),
    message_id: randomUUID(),
    surface: 'web',
    ...over,
  });

  it('gives each message once, the newest first, page by page, whatever times and copies there are', async () => {
    const ages = fc.array(
      fc.record({
        ageMs: fc.constantFrom(0, 1, 1, 60_000, DAY_MS, 8 * DAY_MS, 300 * DAY_MS),
        copies: fc.constantFrom(1, 1, 5),
      }),
      { minLength: 1, maxLength: 16 },
    );
    await fc.assert(
      fc.asyncProperty(ages, fc.integer({ min: 1, max: 7 }), async (list, messagesMax) => {
        const environment = environmentOf();
        const events = list.map(({ ageMs }) => eventOf(environment, NOW_MS - ageMs));
        const later = (event: object, at: number) => ({
          ...event,
          received_at: toSqlTime(NOW_MS + 1000 * at),
          kafka_offset: at,
        });
        for (let at = 0; at < 5; at++) {
          const rows = events
            .filter((_, index) => at < list[index]!.copies)
            .map((event) => (at === 0 ? event : later(event, at)));
          if (rows.length > 0) await own.insert('events', rows);
        }
        const seen: string[] = [];
        const times: number[] = [];
        let after: MessageSearch['after'];
        for (let pages = 0; pages < 100; pages++) {
          const page = await reads.messages(search(environment, { messagesMax, ...(after && { after }) }));
          seen.push(...page.messages.map(({ messageId }) => messageId));
          times.push(...page.messages.map(({ happenedMs }) => happenedMs));
          if (page.next === null) break;
          after = page.next;
        }
        expect([...seen].sort()).toEqual(events.map(({ message_id }) => message_id).sort());
        expect(times).toEqual([...times].sort((a, b) => b - a));
      }),
      { numRuns: runsOf({ quick: 3, all: 8 }) },
    );
  }, 120_000);

  it('finds what each filter says, and nothing of an environment whose id begins alike', async () => {
    const [environment, key] = [environmentOf(), 'k'.repeat(16)];
    const [one, other] = [
      eventOf(environment, NOW_MS, { identity_key: key, user_id: 'player-7' }),
      eventOf(environment, NOW_MS, { type: 'page', event_name: '', surface: 'unity', test: true }),
    ];
    await own.insert('events', [one, other, eventOf(`${environment}-2`, NOW_MS)]);
    const found = async (over: Partial<MessageSearch>) =>
      (await reads.messages(search(environment, over))).messages.map(({ messageId }) => messageId);
    const identityId = Buffer.from(key).toString('hex');
    for (const over of [{ type: 'track' }, { name: 'jump' }, { surface: 'web' }, { test: false }, { identityId }])
      expect([over, await found(over)]).toEqual([over, [one.message_id]]);
    expect(await found({ test: true })).toEqual([other.message_id]);
    expect(await found({ name: "jump' OR '1' = '1" })).toEqual([]);
  });

  it('finds messages that name a person in any part, in one environment, page by page', async () => {
    const environment = environmentOf();
    const [ada, bob] = ['a'.repeat(16), 'b'.repeat(16)];
    const events = [
      eventOf(environment, NOW_MS, { identity_key: ada, user_id: 'ada' }),
      eventOf(environment, NOW_MS - 1, { identity_key: bob, anonymous_key: ada }),
      eventOf(environment, NOW_MS - 2 * DAY_MS, { type: 'alias', event_name: '', from_key: ada, to_key: bob }),
      eventOf(environment, NOW_MS - 3 * DAY_MS, { type: 'alias', event_name: '', from_key: bob, to_key: ada }),
    ];
    const others = [
      eventOf(environment, NOW_MS, { identity_key: bob }),
      eventOf(`${environment}-2`, NOW_MS, { identity_key: ada }),
    ];
    await own.insert('events', [...events, ...others]);
    const identityIds = [Buffer.from(ada).toString('hex'), 'cd'.repeat(16)];
    const found: string[] = [];
    let after: MessageSearch['after'];
    for (let pages = 0; pages < 10; pages++) {
      const page = await reads.messages(search(environment, { identityIds, messagesMax: 1, ...(after && { after }) }));
      found.push(...page.messages.map(({ messageId }) => messageId));
      if (page.next === null) break;
      after = page.next;
    }
    expect(found).toEqual(events.map(({ message_id }) => message_id));
    const named = async (over: Partial<MessageSearch>) =>
      (await reads.messages(search(environment, { identityIds, ...over }))).messages.map(({ messageId }) => messageId);
    expect(await named({ name: 'jump' })).toEqual(found.slice(0, 2));
    expect(await named({ type: 'alias', surface: 'web', test: false })).toEqual(found.slice(2));
    for (const none of [{ type: 'page' }, { surface: 'unity' }, { test: true }, { type: "' OR 1 = 1 --" }])
      expect([none, await named(none)]).toEqual([none, []]);
    expect((await reads.messages(search(environment, { identityIds: [] }))).messages).toEqual([]);
  });

  it('shows masked ids, and nothing that clients wrote freely, to whoever may not see ids', async () => {
    const environment = environmentOf();
    const secret = 'RAWID';
    const event = eventOf(environment, NOW_MS, {
      user_id: `${secret}-player`,
      anonymous_id: `${secret}-visitor`,
      device_id: secret,
      page_url: secret,
      properties: `{"friend":"${secret}"}`,
      traits: `{"email":"${secret}"}`,
      user_agent: secret,
    });
    await own.insert('events', [event]);
    const { messages } = await reads.messages(search(environment, { idAccess: 'masked ids' }));
    const question = { environmentId: environment, messageId: event.message_id };
    const whole = await reads.message({ ...question, sight: 'masked ids' });
    expect(messages[0]).toMatchObject({ userId: 'RA…', anonymousId: 'RA…' });
    expect([whole.length, whole[0]!.named]).toEqual([1, null]);
    expect(JSON.stringify([messages, whole])).not.toContain(secret);
    const [raw] = await reads.message({ ...question, sight: 'raw ids' });
    expect(raw).toMatchObject({ userId: `${secret}-player`, named: { properties: `{"friend":"${secret}"}` } });
    expect(await reads.message({ ...question, environmentId: `${environment}-2`, sight: 'raw ids' })).toEqual([]);
  });
});

describe('the other reads', () => {
  it('count rejections by code, field and client, over time, and find those of one request', async () => {
    const environment = environmentOf();
    const trace = randomBytes(16).toString('hex');
    const row = {
      environment_id: environment,
      code: 'INVALID_ENUM',
      field: 'surface',
      library: 'web',
      library_version: '1',
    };
    const at = (offset: number, ms: number, over = {}) => ({
      ...row,
      received_at: toSqlTime(ms),
      kafka_offset: offset,
      ...over,
    });
    const rows = [at(1, NOW_MS - DAY_MS), at(2, NOW_MS, { trace_id: trace })];
    await own.insert('message_rejections', rows);
    // The same block once more: as when it was written twice.
    await own.insert('message_rejections', rows);
    const asked = { environmentId: environment, sinceMs: NOW_MS - 2 * DAY_MS, untilMs: NOW_MS + 1 };
    const said = { code: 'INVALID_ENUM', field: 'surface', surface: '', library: 'web', libraryVersion: '1' };
    expect(await reads.rejections(asked)).toEqual([{ ...said, errors: 2, lastMs: NOW_MS, lastTraceId: trace }]);
    const steps = await reads.rejectionSteps({ ...asked, stepS: 86_400 });
    expect(steps.map(({ errors }) => errors)).toEqual([1, 1]);
    const traced = { environmentId: environment, traceId: trace };
    expect(await reads.rejectionsOfTrace(traced)).toEqual([{ ...said, receivedMs: NOW_MS }]);
    expect(await reads.rejectionsOfTrace({ ...traced, environmentId: `${environment}-2` })).toEqual([]);
    expect(await reads.rejectionsOfTrace({ ...traced, traceId: '' })).toEqual([]);
    const counts = await reads.minuteCounts({ ...asked, environmentIds: [environment] });
    expect(counts.map(({ outcome: fate, count }) => [fate, count])).toEqual([
      ['rejected', 1],
      ['rejected', 1],
    ]);
    expect(await reads.minuteCounts({ ...asked, environmentIds: [] })).toEqual([]);
  });

  it('give up when whoever asked has left', async () => {
    const signal = AbortSignal.abort();
    await expect(reads.erasures(environmentOf(), { signal })).rejects.toThrow(/abort/i);
  });

  it('give an erasure without a receipt as waiting, and the receipt of another environment to nobody', async () => {
    const environment = environmentOf();
    const [waiting, done] = [randomUUID(), randomUUID()];
    const of = { environment_id: environment, cutoff_at: toSqlTime(NOW_MS) };
    await own.insert('erasure_requests', [
      { ...of, erasure_id: waiting, requested_at: toSqlTime(NOW_MS) },
      { ...of, erasure_id: done, requested_at: toSqlTime(NOW_MS - DAY_MS) },
    ]);
    const now = toSqlTime(NOW_MS);
    const times = {
      accepted_at: toSqlTime(NOW_MS - DAY_MS),
      fenced_at: now,
      visibly_erased_at: now,
      log_expires_at: now,
    };
    await own.insert('erasure_receipts', [{ ...of, ...times, erasure_id: done, closure_count: 3 }]);
    const erasures = await reads.erasures(environment);
    expect(erasures.map(({ erasureId, state, identities }) => [erasureId, state, identities])).toEqual([
      [waiting, 'waiting', null],
      [done, 'erased', 3],
    ]);
    expect(erasures[0]!.fencedMs).toBeNull();
    expect(erasures[1]).toMatchObject({ fencedMs: NOW_MS, physicallyErasedMs: null, logExpiredMs: null });
    const receipt = await reads.receipt({ environmentId: environment, erasureId: done });
    expect(receipt).toMatchObject({ erasureId: done, closureCount: 3, fencedAt: new Date(NOW_MS).toISOString() });
    expect(await reads.receipt({ environmentId: `${environment}-2`, erasureId: done })).toBeNull();
    expect(await reads.receipt({ environmentId: environment, erasureId: waiting })).toBeNull();
  });

  it('give of each environment the erasure that has waited longest for its receipt, and how many do', async () => {
    const [ours, other, done, unasked] = [environmentOf(), environmentOf(), environmentOf(), environmentOf()];
    const requestOf = (environment: string, ageMs: number, erasureId = randomUUID()) => ({
      environment_id: environment,
      erasure_id: erasureId,
      cutoff_at: toSqlTime(NOW_MS),
      requested_at: toSqlTime(NOW_MS - ageMs),
    });
    const [oldest, ofOurs, ofDone] = [randomUUID(), randomUUID(), randomUUID()];
    const requests = [
      ...[requestOf(ours, 1_000), requestOf(ours, 5_000, oldest), requestOf(ours, 9_000, ofOurs)],
      ...[requestOf(other, 3_000, ofOurs), requestOf(`${ours}-2`, 99_000), requestOf(done, 4_000, ofDone)],
    ];
    await own.insert('erasure_requests', requests);
    // Once more in another block: until a merge both stand.
    const again = requests.map((request) => ({ ...request, trace_id: 'again' }));
    await own.insert('erasure_requests', again);
    const times = {
      accepted_at: toSqlTime(NOW_MS),
      fenced_at: toSqlTime(NOW_MS),
      visibly_erased_at: toSqlTime(NOW_MS),
    };
    const receiptOf = (environment: string, erasureId: string) => ({
      environment_id: environment,
      erasure_id: erasureId,
      cutoff_at: toSqlTime(NOW_MS),
      ...times,
      closure_count: 1,
      log_expires_at: toSqlTime(NOW_MS),
    });
    // A receipt closes the erasure of its own environment alone.
    await own.insert('erasure_receipts', [
      receiptOf(ours, ofOurs),
      receiptOf(done, ofDone),
      receiptOf(unasked, oldest),
    ]);
    expect(await reads.openErasures([ours, done])).toEqual([
      { environmentId: ours, count: 2, oldestMs: NOW_MS - 5_000, oldestId: oldest },
    ]);
    expect(await reads.openErasures([other])).toEqual([
      { environmentId: other, count: 1, oldestMs: NOW_MS - 3_000, oldestId: ofOurs },
    ]);
    const both = await reads.openErasures([other, ours, unasked]);
    expect(both.map(({ environmentId, oldestId }) => [environmentId, oldestId])).toEqual([
      [ours, oldest],
      [other, ofOurs],
    ]);
    expect(await reads.openErasures([])).toEqual([]);
  });

  it('give the audit of one project, the newest first', async () => {
    const project = environmentOf();
    const entry = { project_id: project, kind: 'entry', action: 'session.create', actor: 'ada', detail: '{"n":"1"}' };
    await own.insert('audit_log', [
      { ...entry, entry_id: 'a', happened_at: toSqlTime(NOW_MS), object: 'old' },
      { ...entry, entry_id: 'b', happened_at: toSqlTime(NOW_MS + 1), object: 'new' },
      { ...entry, entry_id: 'c', project_id: `${project}-2`, happened_at: toSqlTime(NOW_MS), object: 'other' },
    ]);
    const asked = { projectId: project, sinceMs: NOW_MS - 1, untilMs: NOW_MS + 2, entriesMax: 10 };
    expect((await reads.audit(asked)).map(({ object }) => object)).toEqual(['new', 'old']);
    expect(await reads.audit({ ...asked, entriesMax: 1 })).toMatchObject([{ object: 'new', detail: '{"n":"1"}' }]);
    expect(await reads.audit({ ...asked, actor: 'bob' })).toEqual([]);
  });
});

it('a text is one literal for ClickHouse, whatever is in it', async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: codePoint, maxLength: 30 }), async (text) => {
      const rows: (readonly unknown[])[] = [];
      for await (const row of own.query(`SELECT hex(${quoteText(text)})`)) rows.push(row);
      expect(rows).toEqual([[Buffer.from(text).toString('hex').toUpperCase()]]);
    }),
    { numRuns: 60 },
  );
});
