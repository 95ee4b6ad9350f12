import fc from 'fast-check';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DEFAULT_LIMITS, type GraphLimits, type IdentityGraph, type LoggedSuspect } from './graph.ts';
import { type Ruling, toRulingFact } from './identities/facts.ts';
import { createGraphFact, type GraphFact } from './identities/steps.ts';
import type { People } from './people.ts';
import { rebuildGraph, toOverrides, toSuspects, type VersionedOverride } from './rebuild.ts';
import { openMemoryPeople } from './test/memory/index.ts';
import { createScenario, describeOutcome, describeValue, type Name, type Scenario } from './test/scenario.ts';
import { openTestPeople } from './test/test-people.ts';

const HOUR_MS = 3_600_000;
const NOW = 100 * 24 * HOUR_MS;
const limits: GraphLimits = { ...DEFAULT_LIMITS, suspectLimit: { anonymousIdsMax: 3, windowMs: 24 * HOUR_MS } };
const testPeople = openTestPeople();
afterAll(testPeople.close);

const toGraphFact = createGraphFact({ keyOf: () => Buffer.alloc(16), isBlocked: () => false });
const rulingAt =
  (receivedAt: number) =>
  (scenario: Scenario, verdict: Ruling['verdict'], name: Name): GraphFact => {
    const kind = name.slice(0, name.indexOf(':')) as Ruling['kind'];
    const parts = { environmentId: scenario.environmentId, messageId: Buffer.alloc(16), receivedAt, traceId: '' };
    const { offset } = scenario.position({ link: 'alias', from: 'custom:x', to: 'custom:y' });
    return toGraphFact(toRulingFact({ verdict, key: scenario.keyOf(name), kind }, parts), offset);
  };
const ruling = rulingAt(NOW);

describe.each([
  { name: 'in memory', open: async (): Promise<People> => openMemoryPeople(limits) },
  { name: 'in Redis', open: async () => (await testPeople.open({ limits })).people },
])('suspects $name', ({ open }) => {
  let people: People;
  let graph: IdentityGraph;
  let scenario: Scenario;
  const applyAll = async (facts: readonly GraphFact[]) =>
    graph.apply({ generation: 0, partition: 0, after: -1, through: facts.at(-1)!.offset, facts });
  const apply = async (fact: GraphFact) => describeOutcome((await applyAll([fact]))[0]!);
  const identify = (at: number, to: Name, receivedAt = NOW) =>
    scenario.position({ link: 'identify', from: `anonymous:${at}`, to, receivedAt });
  const linkAnonymousIds = async (count: number, to: Name) => {
    const outcomes: string[] = [];
    for (let at = 1; at <= count; at++) outcomes.push(...(await apply(identify(at, to))));
    return outcomes;
  };
  const suspects = async () =>
    (await graph.suspects(scenario.environmentId)).map(({ key, state, since }) => [key.toString('hex'), state, since]);
  const hex = (name: Name) => scenario.keyOf(name).toString('hex');

  beforeEach(async () => {
    scenario = createScenario();
    people = await open();
    ({ graph } = people);
    await people.rebuild.mintEpoch();
  });
  afterEach(() => people.close());

  it('an id that links too many anonymous ids is held, and its existing links remain', async () => {
    expect(await linkAnonymousIds(5, 'untyped:everybody')).toEqual([
      ...['linked', 'linked', 'linked'],
      ...['refused: suspect', 'refused: suspect'],
    ]);
    expect(await suspects()).toEqual([[hex('untyped:everybody'), 'held', NOW]]);
    expect(await apply(identify(2, 'untyped:everybody', NOW + 1))).toEqual(['unchanged']);
    expect(await apply(identify(9, 'untyped:everybody', NOW + 40 * 24 * HOUR_MS))).toEqual(['refused: suspect']);
    expect(await apply(identify(9, 'untyped:another'))).toEqual(['linked']);
  });

  it('an id that links the same number of anonymous ids over a longer time is not held', async () => {
    for (let at = 1; at <= 8; at++)
      expect(await apply(identify(at, 'untyped:traveller', NOW + at * 9 * HOUR_MS))).toEqual(['linked']);
    expect(await suspects()).toEqual([]);
  });

  it('an id is held on either side of an alias', async () => {
    const alias = (at: number) =>
      apply(scenario.position({ link: 'alias', from: 'steam:s', to: `anonymous:${at}`, receivedAt: NOW }));
    for (let at = 1; at <= 3; at++) expect(await alias(at)).toEqual(['linked']);
    expect(await alias(4)).toEqual(['refused: suspect']);
    expect(await suspects()).toEqual([[hex('steam:s'), 'held', NOW]]);
  });

  it('after an id is allowed, its links are accepted, including links that were refused', async () => {
    await linkAnonymousIds(4, 'untyped:cafe');
    expect(await apply(rulingAt(NOW + 5)(scenario, 'allow', 'untyped:cafe'))).toEqual(['unchanged: operator_allowed']);
    expect(await suspects()).toEqual([[hex('untyped:cafe'), 'allowed', NOW + 5]]);
    expect(await linkAnonymousIds(6, 'untyped:cafe')).toEqual([
      ...['unchanged', 'unchanged', 'unchanged'],
      ...['linked', 'linked', 'linked'],
    ]);
  });

  it('the graph refuses links of a blocked id', async () => {
    await linkAnonymousIds(4, 'untyped:shared');
    expect(await apply(ruling(scenario, 'block', 'untyped:shared'))).toEqual(['unchanged: operator_blocked']);
    expect(await apply(identify(1, 'untyped:shared'))).toEqual(['refused: blocked']);
    expect(await apply(identify(9, 'untyped:shared'))).toEqual(['refused: blocked']);
    expect(await apply(ruling(scenario, 'allow', 'untyped:shared'))).toEqual(['unchanged: operator_allowed']);
    expect(await apply(identify(9, 'untyped:shared'))).toEqual(['linked']);
  });

  it('redelivered facts return their recorded decisions and are counted once', async () => {
    const facts = [1, 2, 3, 4, 5].map((at) => identify(at, 'untyped:twice'));
    const first = await applyAll(facts);
    expect(describeValue(await applyAll(facts.slice(2)))).toEqual(describeValue(first.slice(2)));
    expect(await suspects()).toEqual([[hex('untyped:twice'), 'held', NOW]]);
  });

  it('an erasure deletes a held id but keeps rulings', async () => {
    const names = ['untyped:gone', 'untyped:n/a', 'untyped:cafe'] as const;
    for (const name of names) await linkAnonymousIds(4, name);
    await apply(ruling(scenario, 'block', names[1]));
    await apply(ruling(scenario, 'allow', names[2]));
    const hold = { environmentId: scenario.environmentId, erasureId: Buffer.alloc(16, 1) };
    const keys = names.map(scenario.keyOf);
    await people.guards.putHold({ ...hold, keys, cutoffMs: NOW, lapsesAtMs: null });
    await people.guards.fence(keys.map((key) => ({ environmentId: scenario.environmentId, key, cutoffMs: NOW })));
    await graph.forget(hold, keys);
    await people.guards.releaseHold(hold);
    const ruled = [
      [hex(names[1]), 'blocked', NOW],
      [hex(names[2]), 'allowed', NOW],
    ].sort();
    expect((await suspects()).sort()).toEqual(ruled);
    expect(await apply(identify(9, names[1], NOW + 1))).toEqual(['refused: blocked']);
  });
});

describe('suspect programs', () => {
  const names: readonly Name[] = ['untyped:a', 'untyped:b'];
  const action = fc.oneof(
    { weight: 4, arbitrary: fc.record({ at: fc.nat(9), to: fc.nat(1) }) },
    {
      weight: 1,
      arbitrary: fc.record({ verdict: fc.constantFrom('allow' as const, 'block' as const), to: fc.nat(1) }),
    },
  );
  const program = fc.array(fc.record({ action, order: fc.nat() }), { maxLength: 25 });

  it('Redis, the memory store and a rebuild from unordered decisions contain the same suspects', async () => {
    await fc.assert(
      fc.asyncProperty(program, async (steps) => {
        const scenario = createScenario();
        const facts = steps.map(({ action }) =>
          'verdict' in action
            ? ruling(scenario, action.verdict, names[action.to]!)
            : scenario.position({
                link: 'identify',
                from: `anonymous:${action.at}`,
                to: names[action.to]!,
                receivedAt: NOW,
              }),
        );
        const stores = [openMemoryPeople(limits), (await testPeople.open({ limits })).people] as const;
        for (const { rebuild } of stores) await rebuild.mintEpoch();
        const block = { generation: 0, partition: 0, after: -1, through: facts.length, facts };
        const [model, inStore] = [await stores[0].graph.apply(block), await stores[1].graph.apply(block)];
        expect(describeValue(inStore)).toEqual(describeValue(model));

        const rows = model.flatMap((applied, index): [number, VersionedOverride | LoggedSuspect][] => {
          if (applied.kind !== 'decided') return [];
          const records = scenario.toRecords(facts[index]!, applied.decisions);
          const restored = records.flatMap((record) => [...toOverrides(record, BigInt(index)), ...toSuspects(record)]);
          return restored.map((row) => [steps[index]!.order, row]);
        });
        const later = rows.sort(([a], [b]) => a - b).map(([, row]) => row);
        const rebuilt = (await testPeople.open({ limits })).people;
        await rebuildGraph(rebuilt, { fences: [], applied: [], unlinks: [], stored: [], decided: [], later });
        await rebuilt.rebuild.mintEpoch();

        const statesOf = async ({ graph }: People) =>
          (await graph.suspects(scenario.environmentId)).map(({ key, state }) => `${key.toString('hex')} ${state}`);
        const expected = await statesOf(stores[0]);
        expect(await statesOf(stores[1])).toEqual(expected);
        expect(await statesOf(rebuilt)).toEqual(expected);
        await Promise.all([stores[1].close(), rebuilt.close()]);
      }),
      { numRuns: 40 },
    );
  });
});
