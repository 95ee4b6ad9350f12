import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DEFAULT_LIMITS, type IdentityGraph } from './graph.ts';
import type { StepDecision } from './identities/decisions.ts';
import type { People } from './people.ts';
import { openMemoryPeople } from './test/memory/index.ts';
import { createScenario, describeValue, type FactOptions, type Name, type Scenario } from './test/scenario.ts';
import { openTestPeople } from './test/test-people.ts';

const NOW = 1_000_000;
const testPeople = openTestPeople();
afterAll(testPeople.close);

describe.each([
  { name: 'in memory', open: async (): Promise<People> => openMemoryPeople(DEFAULT_LIMITS) },
  { name: 'in Redis', open: async () => (await testPeople.open()).people },
])('unlinks $name', ({ open }) => {
  let people: People;
  let graph: IdentityGraph;
  let scenario: Scenario;
  const apply = (fact: FactOptions) => scenario.apply(graph, fact);
  const alias = (from: Name, to: Name, receivedAt = NOW) => apply({ link: 'alias', from, to, receivedAt });
  const unlink = (to: Name, extra: Name[] = [], receivedAt = NOW) => apply({ link: 'unlink', to, extra, receivedAt });
  /** Applies a fact and returns its decision. */
  const decide = async (fact: FactOptions): Promise<StepDecision> => {
    const positioned = scenario.position(fact);
    const block = { generation: 0, partition: 0, after: positioned.offset - 1, through: positioned.offset };
    const [applied] = await graph.apply({ ...block, facts: [positioned] });
    if (applied?.kind !== 'decided') throw new Error('not decided');
    return applied.decisions[0]!;
  };
  const hexOf = (name: Name) => scenario.keyOf(name).toString('hex');
  const rootOf = async (name: Name) =>
    (await graph.rootOf(scenario.environmentId, scenario.keyOf(name)))?.toString('hex') ?? null;
  const membersOf = async (name: Name) =>
    (await graph.membersOf(scenario.environmentId, scenario.keyOf(name))).map(({ key }) => key.toString('hex')).sort();
  const hexesOf = (...names: Name[]) => names.map(hexOf).sort();

  beforeEach(async () => {
    scenario = createScenario();
    people = await open();
    ({ graph } = people);
    await people.rebuild.mintEpoch();
  });
  afterEach(() => people.close());

  it("an unlink splits a person in two, and each side has a member's key as person key", async () => {
    for (const from of ['steam:1', 'epic:2', 'custom:3', 'google:4'] as const) await alias(from, 'email:5');
    const root = await rootOf('email:5');
    const decision = await decide({ link: 'unlink', to: 'steam:1', extra: ['epic:2'], receivedAt: NOW });
    expect(decision).toMatchObject({ link: 'unlink', outcome: 'unlinked', reason: '' });
    expect(await membersOf('steam:1')).toEqual(hexesOf('steam:1', 'epic:2'));
    expect(await membersOf('email:5')).toEqual(hexesOf('custom:3', 'google:4', 'email:5'));
    for (const [name, sideRoot] of [
      ['steam:1', decision.root],
      ['email:5', decision.stayed!.root],
    ] as const) {
      expect(await rootOf(name)).toBe(sideRoot.toString('hex'));
      expect(await membersOf(name)).toContain(sideRoot.toString('hex'));
    }
    expect([decision.root, decision.stayed!.root].map((key) => key.toString('hex'))).toContain(root);
    expect(decision.moved.map(({ key }) => key.toString('hex'))).toEqual(hexesOf('steam:1', 'epic:2'));
    expect(decision.stayed!.members.map(({ key }) => key.toString('hex'))).toEqual(await membersOf('email:5'));
  });

  it.each(['the person key', 'not the person key'] as const)(
    'an unlink splits off a single identity whose key is %s',
    async (which) => {
      await alias('steam:1', 'epic:2');
      await alias('custom:3', 'epic:2');
      const root = (await rootOf('epic:2'))!;
      const names: Name[] = ['steam:1', 'epic:2', 'custom:3'];
      const singleName = names.find((name) => (hexOf(name) === root) === (which === 'the person key'))!;
      expect(await unlink(singleName)).toEqual(['unlinked']);
      expect([await rootOf(singleName), await membersOf(singleName)]).toEqual([hexOf(singleName), [hexOf(singleName)]]);
      const remaining = names.filter((name) => name !== singleName);
      for (const name of remaining) expect(await membersOf(name)).toEqual(hexesOf(...remaining));
      expect(remaining.map(hexOf)).toContain(await rootOf(remaining[0]!));
    },
  );

  it('facts up to the time of the unlink cannot rejoin the two sides, even through other identities', async () => {
    await alias('steam:1', 'epic:2');
    await unlink('steam:1', [], NOW + 10);
    expect(await alias('steam:1', 'epic:2', NOW + 10)).toEqual(['refused: unlinked']);
    // The event happened before the unlink but was received after it.
    expect(
      await apply({ link: 'alias', from: 'epic:2', to: 'steam:1', receivedAt: NOW + 20, eventTime: NOW + 10 }),
    ).toEqual(['refused: unlinked']);
    // Other identities can join either side but cannot connect both sides.
    expect(await alias('custom:3', 'steam:1', NOW + 5)).toEqual(['linked']);
    expect(await alias('google:4', 'epic:2', NOW + 5)).toEqual(['linked']);
    expect(await alias('custom:3', 'google:4', NOW + 5)).toEqual(['refused: unlinked']);
    expect(await alias('custom:3', 'google:4', NOW + 11)).toEqual(['linked']);
    expect(await alias('steam:1', 'epic:2', NOW)).toEqual(['unchanged']);
  });

  it('a redelivered identify does not relink an untyped id that was split off', async () => {
    await apply({ link: 'identify', from: 'anonymous:a', to: 'steam:s', receivedAt: NOW });
    expect(await unlink('untyped:s')).toEqual(['unlinked']);
    const relink = { link: 'identify', from: 'anonymous:a', to: 'steam:s' } as const;
    expect(await apply({ ...relink, receivedAt: NOW })).toEqual(['refused: unlinked', 'unchanged']);
    expect(await apply({ ...relink, receivedAt: NOW + 1 })).toEqual(['linked', 'unchanged']);
  });

  it('an unlink of ids from several persons is refused, and an unlink of a whole person changes nothing', async () => {
    await alias('steam:1', 'epic:2');
    await alias('custom:3', 'google:4');
    const digest = async () => [await rootOf('steam:1'), await rootOf('custom:3'), await rootOf('email:5')];
    const before = await digest();
    expect(await unlink('steam:1', ['custom:3'])).toEqual(['refused: not_one_person']);
    expect(await unlink('steam:1', ['email:5'], NOW + 1)).toEqual(['refused: not_one_person']);
    expect(await unlink('email:5', ['email:6'])).toEqual(['refused: not_one_person']);
    expect(await unlink('steam:1', ['epic:2'], NOW + 2)).toEqual(['unchanged']);
    expect(await unlink('email:5', [], NOW + 3)).toEqual(['unchanged']);
    expect(await digest()).toEqual(before);
    // The refused unlink does not prevent links.
    expect(await alias('steam:1', 'custom:3', NOW - 1)).toEqual(['linked']);
  });

  it('an unlink of an erased identity is refused, and an erasure deletes unlink sides', async () => {
    const { environmentId } = scenario;
    await alias('steam:1', 'epic:2');
    await alias('custom:3', 'epic:2');
    await unlink('steam:1');
    await people.guards.fence([{ environmentId, key: scenario.keyOf('steam:1'), cutoffMs: NOW }]);
    const erasure = { environmentId, erasureId: randomBytes(16) };
    await people.guards.putHold({ ...erasure, keys: [], cutoffMs: NOW, lapsesAtMs: null });
    await graph.forget(erasure, [scenario.keyOf('steam:1')]);
    await people.guards.releaseHold(erasure);
    expect(await unlink('steam:1')).toEqual(['refused: fenced']);
    expect(await rootOf('steam:1')).toBeNull();
    expect(await alias('steam:1', 'epic:2')).toEqual(['refused: fenced']);
    // Unlinks before the erasure no longer affect new links of the identity.
    expect(await alias('steam:1', 'epic:2', NOW + 1)).toEqual(['linked']);
  });

  it('a person with hundreds of identities can be split in the call that creates the person or later', async () => {
    const model = openMemoryPeople();
    await model.rebuild.mintEpoch();
    const names = Array.from({ length: 240 }, (_, at): Name => `custom:n${at}`);
    const links = names.slice(1).map((from): FactOptions => ({ link: 'alias', from, to: names[0]!, receivedAt: NOW }));
    const split = (from: number, to: number): FactOptions => ({
      link: 'unlink',
      to: names[from]!,
      extra: names.slice(from + 1, to),
      receivedAt: NOW + 1,
    });
    const link = (at: number): FactOptions => ({ link: 'alias', from: 'email:x', to: names[at]!, receivedAt: NOW + 2 });
    const blocks = [
      links.slice(0, 100),
      [...links.slice(100), split(5, 90), link(6)],
      [split(0, 3)],
      [link(1), split(100, 160)],
    ];
    for (const block of blocks) {
      const facts = block.map(scenario.position);
      const request = {
        generation: 0,
        partition: 0,
        after: facts[0]!.offset - 1,
        through: facts.at(-1)!.offset,
        facts,
      };
      const [applied, expected] = [await graph.apply(request), await model.graph.apply(request)];
      expect(describeValue(applied)).toEqual(describeValue(expected));
    }
    const digestOf = ({ rebuild }: People) => rebuild.digest(scenario.environmentId);
    expect(await digestOf(people)).toBe(await digestOf(model));
    const sizes = [0, 3, 5, 89, 90, 100, 159, 160].map(async (at) => (await membersOf(names[at]!)).length);
    // email:x moved with the first three identities because it was linked with both sides.
    expect(await Promise.all(sizes)).toEqual([89, 92, 89, 89, 92, 60, 60, 92]);
  });
});
