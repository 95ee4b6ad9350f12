import { randomUUID } from 'node:crypto';
import { openErasureRows } from '@playline/erasure/clickhouse';
import { createEventDays } from '@playline/events/clickhouse';
import { type OwnDatabase, openOwnDatabase, until } from '@playline/testkit';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';

// Compares the view events_per_day with a list of messages after each step, whether days are counted or not.

const DAY_MS = 24 * 60 * 60_000;
const START_MS = Date.parse('2026-03-30T00:00:00Z');
const DAYS = 3;
/** The writer marks a day this long after it was counted, and spends a share of this time. */
const MARK_AFTER_MS = 600_000;
const OWNERS = [0, 1, 2];

interface Message {
  readonly id: string;
  readonly day: number;
  readonly name: string;
  readonly owner: number;
  readonly isTest: boolean;
  /** Times of receipt of the message and its copies, relative to the event. */
  readonly delaysMs: readonly number[];
}
type Step =
  | { readonly kind: 'messages'; readonly messages: readonly Message[] }
  | { readonly kind: 'copies' }
  | { readonly kind: 'count'; readonly isMarked: boolean }
  | { readonly kind: 'erasure'; readonly owner: number; readonly day: number; readonly isCounting: boolean }
  | { readonly kind: 'merge' };

const message: fc.Arbitrary<Message> = fc.record({
  id: fc.constant('').map(() => randomUUID()),
  day: fc.nat(DAYS - 1),
  name: fc.constantFrom('level_started', 'purchase', ''),
  owner: fc.constantFrom(...OWNERS),
  isTest: fc.nat(9).map((number) => number === 0),
  delaysMs: fc.array(fc.constantFrom(0, 5_000, 3 * DAY_MS), { minLength: 1, maxLength: 3 }),
});
const messages = fc.array(message, { minLength: 1, maxLength: 6 });
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('messages' as const), messages }) },
    { weight: 1, arbitrary: fc.constant({ kind: 'copies' as const }) },
    { weight: 5, arbitrary: fc.record({ kind: fc.constant('count' as const), isMarked: fc.nat(3).map(Boolean) }) },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant('erasure' as const),
        owner: fc.constantFrom(...OWNERS),
        day: fc.nat(DAYS),
        isCounting: fc.boolean(),
      }),
    },
    { weight: 1, arbitrary: fc.constant({ kind: 'merge' as const }) },
  ),
  { minLength: 4, maxLength: 14 },
);

let database: OwnDatabase;
beforeAll(async () => {
  database = await openOwnDatabase();
});
afterAll(() => database.close());

const read = async (sql: string) =>
  (await database.query(`${sql} FORMAT TSV`)).split('\n').filter((line) => line !== '');
const toText = (ms: number) => new Date(ms).toISOString().replace(/[TZ]/g, ' ').trim();
const dayOf = (day: number) => toText(START_MS + day * DAY_MS).slice(0, 10);
const toKey = (environment: number, owner: number) => `${environment}-${owner}`.padStart(8, '0').padEnd(16, '0');

async function insert(environment: number, list: readonly Message[]): Promise<void> {
  const rows = list.flatMap(({ delaysMs, ...each }) =>
    delaysMs.map((delayMs, copy) => ({
      environment_id: `days-${environment}`,
      type: 'track',
      event_name: each.name,
      event_time: toText(START_MS + each.day * DAY_MS),
      received_at: toText(START_MS + each.day * DAY_MS + delayMs),
      message_id: each.id,
      identity_key: toKey(environment, each.owner),
      test: each.isTest,
      kafka_offset: copy,
    })),
  );
  await database.query(`INSERT INTO events FORMAT JSONEachRow ${rows.map((row) => JSON.stringify(row)).join(' ')}`);
}

async function erase(environment: number, owner: number, cutoffMs: number): Promise<void> {
  const rows = openErasureRows(database.target);
  const batch = Buffer.from(randomUUID().replaceAll('-', ''), 'hex');
  try {
    const key = Buffer.from(toKey(environment, owner));
    await rows.putTargets(batch, [{ environmentId: `days-${environment}`, key, cutoffMs }]);
    await rows.sweep(batch);
    await rows.dropTargets(batch);
  } finally {
    await rows.close();
  }
}

const readUncounted = (id: string) =>
  read(
    `SELECT day FROM counted_days WHERE environment_id = '${id}' GROUP BY day HAVING max(stored_at) >= max(counted_at)`,
  );

/** A day is not counted while the server receives any other insert. */
const countAll = (id: string, update: () => Promise<void>) =>
  until('all days are counted', async () => {
    await update();
    return (await readUncounted(id)).length === 0;
  });

/** As if the minutes had passed in which the days of an erasure are not counted. */
async function endHolds(): Promise<void> {
  const held = (
    await read(
      'SELECT environment_id, day, max(counted_at) FROM counted_days GROUP BY ALL HAVING max(stored_at) > now64(3)',
    )
  )
    .map((line) => line.split('\t'))
    .map(([environment, day, counted]) => `('${environment}', '${day}', now64(3, 'UTC'), '${counted}')`);
  if (held.length === 0) return;
  await database.query('ALTER TABLE counted_days DELETE WHERE stored_at > now64(3) SETTINGS mutations_sync = 1');
  await database.query(
    `INSERT INTO counted_days (environment_id, day, stored_at, counted_at) VALUES ${held.join(', ')}`,
  );
}

/** Without this list, all generated steps may compare only days that are not counted. */
const countedDays: Step[] = [
  {
    kind: 'messages',
    messages: Array.from({ length: DAYS }, (_, day) => ({
      id: randomUUID(),
      day,
      name: 'purchase',
      owner: 0,
      isTest: false,
      delaysMs: [0, 5_000],
    })),
  },
  { kind: 'count', isMarked: true },
  { kind: 'copies' },
  { kind: 'count', isMarked: true },
];

it('events_per_day equals the messages after copies, late events, counts, erasures during a count, and merges', async () => {
  let environment = 0;
  let nowMs = 0;
  const days = createEventDays(database.target, { nowMs: () => nowMs, settleS: 0 });
  await fc.assert(
    fc.asyncProperty(steps, async (list) => {
      const id = `days-${++environment}`;
      let stored: Message[] = [];
      for (const step of list) {
        if (step.kind === 'messages') {
          stored.push(...step.messages);
          await insert(environment, step.messages);
        } else if (step.kind === 'copies') {
          if (stored.length > 0) await insert(environment, stored);
        } else if (step.kind === 'count') {
          await days.update();
          if (step.isMarked)
            await countAll(id, () => {
              nowMs += MARK_AFTER_MS;
              return days.update();
            });
        } else if (step.kind === 'erasure') {
          const cutoffMs = START_MS + step.day * DAY_MS;
          stored = stored.filter(({ owner, day }) => owner !== step.owner || START_MS + day * DAY_MS > cutoffMs);
          await Promise.all([erase(environment, step.owner, cutoffMs), step.isCounting && days.update()]);
          await endHolds();
        } else
          for (const table of ['events', 'event_days', 'counted_days'])
            await database.query(`OPTIMIZE TABLE ${table} FINAL`);
        const counts = new Map<string, number>();
        for (const { day, name, isTest } of stored) {
          const key = `${dayOf(day)}\t${name}`;
          if (!isTest) counts.set(key, (counts.get(key) ?? 0) + 1);
        }
        const found = await read(
          `SELECT event_day, event_name, sum(events) FROM events_per_day WHERE environment_id = '${id}' GROUP BY ALL`,
        );
        expect(found.sort()).toEqual([...counts].map(([key, events]) => `${key}\t${events}`).sort());
      }
    }),
    { numRuns: runsOf({ quick: 6, all: 41 }), examples: [[countedDays]], endOnFailure: true },
  );
});

it('events_per_day returns the number of events while its days are opened and marked as counted', async () => {
  const id = 'days-opened';
  await database.query(
    `INSERT INTO events (environment_id, type, event_name, event_time, message_id)
     SELECT '${id}', 'track', 'purchase', toDateTime64('2026-03-30', 3, 'UTC') + toIntervalDay(number % 3), generateUUIDv4() FROM numbers(300)`,
  );
  let nowMs = 0;
  const days = createEventDays(database.target, { nowMs: () => nowMs, settleS: 0 });
  await countAll(id, () => {
    nowMs += MARK_AFTER_MS;
    return days.update();
  });
  const numbers = new Set<string>();
  let isDone = false;
  const note = async () => {
    for (let column = 'stored_at'; !isDone; column = column === 'stored_at' ? 'counted_at' : 'stored_at')
      await database.query(
        `INSERT INTO counted_days (environment_id, day, ${column})
         SELECT DISTINCT environment_id, day, now64(3, 'UTC') FROM counted_days WHERE environment_id = '${id}'`,
      );
  };
  const noting = note();
  try {
    for (let reads = 0; reads < 200; reads++)
      for (const number of await read(`SELECT sum(events) FROM events_per_day WHERE environment_id = '${id}'`))
        numbers.add(number);
  } finally {
    isDone = true;
    await noting;
  }
  expect([...numbers]).toEqual(['300']);
});
