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
const person = fc.nat({ max: PEOPLE });
const timestamp = fc.integer({ min: T - 2, max: T + 2 });
const event = fc.record({
  identity_key: person,
  anonymous_key: person,
  from_key: person,
  to_key: person,
  event_time: timestamp,
  received_at: timestamp,
  isSecond: fc.boolean(),
});
const target = fc.record({ key: fc.integer({ min: 1, max: PEOPLE }), cutoffMs: timestamp, isSecond: fc.boolean() });

const COLUMNS = ['trace_id', 'identity_key', 'anonymous_key', 'anonymous_id', 'from_key', 'to_key'];
const format = ({ table, column, as, environmentId, key, rows }: FoundRows) =>
  `${rows} ${as} ${table}.${column} ${environmentId} ${key.toString('hex')}`;

/** Events of a few people, and the people to erase with their cut-offs. */
interface Scenario {
  readonly events: readonly (typeof event extends fc.Arbitrary<infer E> ? E : never)[];
  readonly targets: readonly (typeof target extends fc.Arbitrary<infer E> ? E : never)[];
}
const scenario: fc.Arbitrary<Scenario> = fc.record({
  events: fc.array(event, { minLength: 1, maxLength: 12 }),
  targets: fc.array(target, { minLength: 1, maxLength: 4 }),
});

function toCase({ events, targets }: Scenario) {
  const environments = [newEnvironment(), newEnvironment()] as const;
  // The zero key, followed by the keys of the people in this scenario.
  const keys = [Buffer.alloc(16), ...Array.from({ length: PEOPLE }, newKey)];
  const environmentOf = (isSecond: boolean) => environments[isSecond ? 1 : 0];
  return {
    environments,
    rows: events.map(({ isSecond, event_time, received_at, ...people }, row): MemoryRow => {
      const named = Object.entries(people).map(([column, index]) => [column, keys[index]!]);
      const environment_id = environmentOf(isSecond);
      const fixed = { event_name: 'a', message_id: randomUUID(), trace_id: String(row), anonymous_id: 'someone' };
      return { environment_id, ...fixed, event_time, received_at, ...Object.fromEntries(named) };
    }),
    targets: targets.map(({ key, cutoffMs, isSecond }) => {
      return { environmentId: environmentOf(isSecond), key: keys[key]!, cutoffMs };
    }),
  };
}

it('the in-memory store and ClickHouse find, delete and blank the same rows', async () => {
  // Five scenarios per sweep because every sweep rewrites all tables.
  const property = fc.asyncProperty(fc.array(scenario, { minLength: 5, maxLength: 5 }), async (scenarios) => {
    const cases = scenarios.map(toCase);
    const batch = newBatch();
    const outcomes = [];
    for (const { rows: store, add, read } of harnesses) {
      await Promise.all(cases.flatMap(({ rows }) => rows).map((row) => add('events', row)));
      await store.putTargets(
        batch,
        cases.flatMap(({ targets }) => targets),
      );
      const found = (await sweepAll(store, batch)).map(format).sort();
      const environments = cases.flatMap((each) => each.environments);
      const remaining = await Promise.all(environments.map((environment) => read('events', environment, COLUMNS)));
      expect(await store.findSurvivors(batch)).toEqual([]);
      outcomes.push({ found, remaining: remaining.map((rows) => rows.sort()) });
    }
    expect(outcomes[1]).toEqual(outcomes[0]);
  });
  await fc.assert(property, { numRuns: runsOf({ quick: 1, all: 3 }) });
});
