import { randomUUID } from 'node:crypto';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { FoundRows } from './rows.ts';
import type { MemoryRow } from './test/memory/rows.ts';
import { openClickHouseHarness, openMemoryHarness, type RowsHarness } from './test/open-rows.ts';
import { newBatch, newEnvironment, newKey, sweepAll, T } from './test/people.ts';

let harnesses: RowsHarness[];
beforeAll(async () => {
  harnesses = [await openMemoryHarness(), await openClickHouseHarness()];
});
afterAll(() => Promise.all(harnesses.map(({ close }) => close())));

const PEOPLE = 4;
const someone = fc.nat({ max: PEOPLE });
const moment = fc.integer({ min: T - 2, max: T + 2 });
const event = fc.record({
  identity_key: someone,
  anonymous_key: someone,
  from_key: someone,
  to_key: someone,
  event_time: moment,
  received_at: moment,
  second: fc.boolean(),
});
const target = fc.record({ key: fc.integer({ min: 1, max: PEOPLE }), cutoffMs: moment, second: fc.boolean() });

const COLUMNS = ['trace_id', 'identity_key', 'anonymous_key', 'anonymous_id', 'from_key', 'to_key'];
const show = ({ table, column, as, environmentId, key, rows }: FoundRows) =>
  `${rows} ${as} ${table}.${column} ${environmentId} ${key.toString('hex')}`;

/** Events of a few people, and the people to erase with their cut-offs. */
interface Story {
  readonly events: readonly (typeof event extends fc.Arbitrary<infer E> ? E : never)[];
  readonly targets: readonly (typeof target extends fc.Arbitrary<infer E> ? E : never)[];
}
const story: fc.Arbitrary<Story> = fc.record({
  events: fc.array(event, { minLength: 1, maxLength: 12 }),
  targets: fc.array(target, { minLength: 1, maxLength: 4 }),
});

function toCase({ events, targets }: Story) {
  const environments = [newEnvironment(), newEnvironment()] as const;
  // The zero key, then the people in this story.
  const keys = [Buffer.alloc(16), ...Array.from({ length: PEOPLE }, newKey)];
  const environmentOf = (second: boolean) => environments[second ? 1 : 0];
  return {
    environments,
    rows: events.map(({ second, event_time, received_at, ...who }, index): MemoryRow => {
      const named = Object.entries(who).map(([column, person]) => [column, keys[person]!]);
      const environment_id = environmentOf(second);
      const fixed = { event_name: 'a', message_id: randomUUID(), trace_id: String(index), anonymous_id: 'someone' };
      return { environment_id, ...fixed, event_time, received_at, ...Object.fromEntries(named) };
    }),
    targets: targets.map(({ key, cutoffMs, second }) => {
      return { environmentId: environmentOf(second), key: keys[key]!, cutoffMs };
    }),
  };
}

it('memory and ClickHouse find, delete and blank the same rows', async () => {
  // Five stories per sweep, because every sweep rewrites all tables.
  const property = fc.asyncProperty(fc.array(story, { minLength: 5, maxLength: 5 }), async (stories) => {
    const cases = stories.map(toCase);
    const batch = newBatch();
    const outcomes = [];
    for (const { rows: store, add, read } of harnesses) {
      await Promise.all(cases.flatMap(({ rows }) => rows).map((row) => add('events', row)));
      await store.putTargets(
        batch,
        cases.flatMap(({ targets }) => targets),
      );
      const found = (await sweepAll(store, batch)).map(show).sort();
      const environments = cases.flatMap((each) => each.environments);
      const left = await Promise.all(environments.map((environment) => read('events', environment, COLUMNS)));
      expect(await store.findSurvivors(batch)).toEqual([]);
      outcomes.push({ found, left: left.map((rows) => rows.sort()) });
    }
    expect(outcomes[1]).toEqual(outcomes[0]);
  });
  await fc.assert(property, { numRuns: runsOf({ quick: 1, all: 3 }) });
});
