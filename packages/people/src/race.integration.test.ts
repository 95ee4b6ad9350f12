import { IDENTITY_TYPES } from '@playline/contracts';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Applied, IdentityGraph } from './graph.ts';
import type { GraphFact } from './identities/steps.ts';
import type { People } from './people.ts';
import { openMemoryPeople } from './test/memory/index.ts';
import { createScenario, describeValue, type FactOptions, type Name } from './test/scenario.ts';
import { openTestPeople } from './test/test-people.ts';

const testPeople = openTestPeople();
let linkers: People[];
let partitions = 0;

beforeAll(async () => {
  const first = await testPeople.open();
  linkers = [first.people, (await testPeople.open({ namespace: first.namespace })).people];
  await first.people.rebuild.mintEpoch();
});
afterAll(testPeople.close);

const names = (kind: string) => fc.constantFrom('1', '2', '3', '4').map((id) => `${kind}:${id}` as Name);
const fact = fc.record({ from: names('anonymous'), to: fc.oneof(names('steam'), names('untyped')) });
const cuts = fc.infiniteStream(fc.integer({ min: 1, max: 50 }));

/** Applies all facts from a partition in blocks, like a linker that owns the partition. */
async function applyAll(
  graph: IdentityGraph,
  source: { partition: number; facts: GraphFact[]; sizes: Iterator<number> },
) {
  const results: Applied[] = [];
  for (let at = 0; at < source.facts.length; ) {
    const facts = source.facts.slice(at, at + source.sizes.next().value!);
    const block = { generation: 0, partition: source.partition, after: at - 1, through: facts.at(-1)!.offset, facts };
    results.push(...(await graph.apply(block)));
    at += facts.length;
  }
  return results;
}

describe('concurrent linkers', () => {
  it('two linkers on the same partition make the same decisions as a single linker', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fact, { minLength: 1, maxLength: 200 }), cuts, cuts, async (list, cutsA, cutsB) => {
        const scenario = createScenario();
        const partition = partitions++;
        const facts = list.map(({ from, to }): FactOptions => ({ link: 'identify', from, to })).map(scenario.position);
        const [a, b] = await Promise.all(
          [cutsA, cutsB].map((sizes, at) => applyAll(linkers[at]!.graph, { partition, facts, sizes })),
        );
        const model = openMemoryPeople();
        await model.rebuild.mintEpoch();
        const expected = await applyAll(model.graph, { partition, facts, sizes: [facts.length].values() });
        expect(describeValue(a)).toEqual(describeValue(expected));
        expect(describeValue(b)).toEqual(describeValue(expected));
        expect(await linkers[0]!.rebuild.digest(scenario.environmentId)).toBe(
          await model.rebuild.digest(scenario.environmentId),
        );
      }),
      { numRuns: 40 },
    );
  });
});

describe('large blocks', () => {
  const typed = fc.constantFrom('steam', 'epic', 'google').chain(names);
  const identify = fc.record({ link: fc.constant('identify'), from: names('anonymous'), to: typed });
  const alias = fc.record({ link: fc.constant('alias'), from: typed, to: fc.oneof(typed, names('untyped')) });
  const facts = fc.array(fc.oneof(identify, alias), { minLength: 300, maxLength: 600 });

  it('a block that takes several calls gets the same decisions as in the memory store', async () => {
    await fc.assert(
      fc.asyncProperty(facts, async (list) => {
        const scenario = createScenario();
        const partition = partitions++;
        const source = { partition, facts: list.map((one) => scenario.position(one as FactOptions)) };
        const model = openMemoryPeople();
        await model.rebuild.mintEpoch();
        const expected = await applyAll(model.graph, { ...source, sizes: [list.length].values() });
        const parts: Applied[] = [];
        const block = { generation: 0, partition, after: -1, through: list.length - 1, facts: source.facts };
        const applied = await linkers[0]!.graph.apply(block, (part) => void parts.push(...part));
        expect(describeValue(applied)).toEqual(describeValue(expected));
        expect(parts).toEqual(applied);
        expect(await linkers[0]!.rebuild.digest(scenario.environmentId)).toBe(
          await model.rebuild.digest(scenario.environmentId),
        );
        expect(describeValue(await linkers[1]!.graph.apply(block))).toEqual(describeValue(expected));
      }),
      { numRuns: 8 },
    );
  });
});

it('aliases are idempotent and produce the same persons regardless of order and batch size', async () => {
  const wideLimits = { identitiesMax: 1_000, anonymousIdsMax: 1_000, anonymousWindowMs: 10, uniqueTypes: [] };
  const { graph, rebuild } = (await testPeople.open({ limits: wideLimits })).people;
  await rebuild.mintEpoch();
  const allNames = IDENTITY_TYPES.flatMap((type) => ['1', '2', '3'].map((id): Name => `${type}:${id}`));
  const link = fc.tuple(fc.constantFrom(...allNames), fc.constantFrom(...allNames)).filter(([from, to]) => from !== to);
  const orders = fc
    .array(link, { minLength: 1, maxLength: 60 })
    .chain((list) => fc.tuple(fc.constant(list), fc.shuffledSubarray(list, { minLength: list.length }), cuts));
  const property = fc.asyncProperty(orders, async ([list, shuffled, sizes]) => {
    const run = async (links: (typeof list)[], blockSizes: Iterator<number>) => {
      const { environmentId, keyOf, position } = createScenario();
      const facts = links.flat().map(([from, to]) => position({ link: 'alias', from, to }));
      const applied = await applyAll(graph, { partition: partitions++, facts, sizes: blockSizes });
      const roots = await graph.rootsOf(environmentId, allNames.map(keyOf));
      const rootKeys = roots.map((root) => root?.toString('hex'));
      // Keys differ between environments, so only the grouping is compared.
      return { applied, components: rootKeys.map((root) => rootKeys.indexOf(root)) };
    };
    const twice = await run([list, shuffled], [list.length, list.length].values());
    for (const applied of twice.applied.slice(list.length))
      expect(applied).toMatchObject({ kind: 'decided', decisions: [{ outcome: 'unchanged' }] });
    expect((await run([shuffled], sizes)).components).toEqual(twice.components);
  });
  await fc.assert(property, { numRuns: 20 });
});
