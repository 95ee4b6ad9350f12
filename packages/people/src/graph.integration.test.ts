import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DEFAULT_LIMITS, GraphBehindFault, type IdentityGraph } from './graph.ts';
import type { People } from './people.ts';
import { EpochPresentFault, MissingEpochFault, MissingHoldFault } from './people.ts';
import { openMemoryPeople } from './test/memory/index.ts';
import { createScenario, type FactOptions, type Name, type Scenario } from './test/scenario.ts';
import { openTestPeople } from './test/test-people.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const NOW = 100 * DAY_MS;
const testPeople = openTestPeople();
afterAll(testPeople.close);

describe.each([
  { name: 'in memory', open: async (limits = DEFAULT_LIMITS): Promise<People> => openMemoryPeople(limits) },
  { name: 'in Redis', open: async (limits = DEFAULT_LIMITS) => (await testPeople.open({ limits })).people },
])('IdentityGraph $name', ({ open }) => {
  let people: People;
  let graph: IdentityGraph;
  let scenario: Scenario;
  const apply = (fact: FactOptions) => scenario.apply(graph, fact);
  const identify = (from: Name | undefined, to: Name, receivedAt = NOW) =>
    apply({ link: 'identify', ...(from && { from }), to, receivedAt });
  const alias = (from: Name, to: Name, receivedAt = NOW) => apply({ link: 'alias', from, to, receivedAt });
  const rootOf = async (name: Name) =>
    (await graph.rootOf(scenario.environmentId, scenario.keyOf(name)))?.toString('hex') ?? null;
  const reopen = async (limits: Partial<typeof DEFAULT_LIMITS> = {}) => {
    people = await open({ ...DEFAULT_LIMITS, ...limits });
    ({ graph } = people);
  };

  beforeEach(async () => {
    scenario = createScenario();
    await reopen();
    await people.rebuild.mintEpoch();
  });
  afterEach(() => people.close());

  it('a typed identify links the anonymous, typed and untyped ids, and the smaller user key becomes the person key', async () => {
    expect(await identify('anonymous:a', 'steam:s')).toEqual(['linked', 'linked']);
    const names: Name[] = ['anonymous:a', 'steam:s', 'untyped:s'];
    const keys = names.map((name) => scenario.keyOf(name).toString('hex')).sort();
    const [, ...userKeys] = names.map((name) => scenario.keyOf(name).toString('hex'));
    for (const name of names) expect(await rootOf(name)).toBe(userKeys.sort()[0]);
    const members = await graph.membersOf(scenario.environmentId, scenario.keyOf('untyped:s'));
    expect(members.map((member) => member.key.toString('hex'))).toEqual(keys);
    expect(new Set(members.map((member) => member.kind))).toEqual(new Set(['anonymous', 'steam', 'untyped']));
    expect(new Set(members.map((member) => member.linkedAt))).toEqual(new Set([NOW]));
  });

  it('the larger side of a link keeps its person key', async () => {
    await identify('anonymous:a', 'steam:s');
    const root = await rootOf('steam:s');
    for (const at of [1, 2, 3, 4]) await alias(`custom:${at}`, 'steam:s');
    await alias('custom:x', 'custom:y');
    await alias('custom:x', 'untyped:s');
    expect(await rootOf('custom:y')).toBe(root);
  });

  const rules: [string, [from: Name | undefined, to: Name, outcomes: string[]][]][] = [
    [
      'an existing link is unchanged',
      [
        ['anonymous:a', 'steam:s', ['linked', 'linked']],
        ['anonymous:a', 'steam:s', ['unchanged', 'unchanged']],
      ],
    ],
    [
      'an untyped id that exists under another type is ambiguous',
      [
        [undefined, 'steam:x', ['linked']],
        ['anonymous:a', 'epic:x', ['ambiguous', 'linked']],
      ],
    ],
    [
      'an untyped id that already has links is linked with its typed id',
      [
        ['anonymous:a', 'untyped:x', ['linked']],
        [undefined, 'steam:x', ['linked']],
      ],
    ],
    [
      'blocked ids are refused',
      [
        ['anonymous:a', 'steam:GUEST', ['refused: blocked', 'refused: blocked']],
        ['anonymous:0', 'steam:s', ['linked', 'refused: blocked']],
      ],
    ],
    [
      'a shared device keeps its first user',
      [
        ['anonymous:a', 'steam:first', ['linked', 'linked']],
        ['anonymous:a', 'steam:second', ['linked', 'refused: shared_device']],
        ['anonymous:b', 'untyped:third', ['linked']],
        ['anonymous:b', 'untyped:fourth', ['refused: shared_device']],
      ],
    ],
  ];
  it.each(rules)('identify: %s', async (_rule, steps) => {
    for (const [from, to, outcomes] of steps) expect(await identify(from, to)).toEqual(outcomes);
  });

  it('an alias links ids of the same or different kinds, but not two ids of a unique type', async () => {
    expect(await alias('steam:s', 'untyped:"none"')).toEqual(['refused: blocked']);
    expect(await alias('email:e1', 'email:e2')).toEqual(['linked']);
    expect(await identify('anonymous:a', 'email:e1')).toEqual(['linked', 'linked']);
    expect(await alias('email:e1', 'passport:p1')).toEqual(['linked']);
    expect(await alias('steam:s', 'passport:p2')).toEqual(['linked']);
    expect(await alias('steam:s', 'email:e2')).toEqual(['refused: two_known_users']);
    scenario = createScenario();
    await reopen({ uniqueTypes: ['passport', 'email'] });
    await people.rebuild.mintEpoch();
    expect(await alias('email:e1', 'email:e2')).toEqual(['refused: two_known_users']);
  });

  it('a person has at most 1,000 identities', async () => {
    const decisions = Array.from({ length: 999 }, (_, at) => at + 1).map((at) => alias(`custom:${at}`, 'custom:1000'));
    expect(new Set((await Promise.all(decisions)).flat())).toEqual(new Set(['linked']));
    expect(await alias('custom:1001', 'custom:7')).toEqual(['refused: too_many_identities']);
    expect(await graph.membersOf(scenario.environmentId, scenario.keyOf('custom:500'))).toHaveLength(1_000);
  });

  it('the 51st anonymous id within 30 days is refused', async () => {
    for (let at = 1; at <= 50; at++) expect(await identify(`anonymous:${at}`, 'untyped:u', NOW)).toEqual(['linked']);
    const refused = ['refused: too_many_anonymous_ids'];
    expect(await identify('anonymous:51', 'untyped:u', NOW + 30 * DAY_MS - 1)).toEqual(refused);
    expect(await identify('anonymous:51', 'untyped:u', NOW + 30 * DAY_MS)).toEqual(['linked']);
  });

  it('an anonymous id counts toward the limit from its first link, even after it moves to another person', async () => {
    await reopen({ anonymousIdsMax: 2 });
    await people.rebuild.mintEpoch();
    await identify('anonymous:1', 'untyped:u', NOW - 31 * DAY_MS);
    await identify('anonymous:2', 'untyped:u', NOW - 31 * DAY_MS);
    for (const at of [1, 2, 3, 4, 5, 6]) await alias(`custom:${at}`, 'untyped:u', NOW);
    expect(await identify('anonymous:3', 'untyped:u', NOW)).toEqual(['linked']);
  });

  it('the graph refuses a fact whose event time or receipt time is not later than the cut-off', async () => {
    const [environmentId, key] = [scenario.environmentId, scenario.keyOf('steam:s')];
    await people.guards.fence([{ environmentId, key, cutoffMs: NOW }]);
    await people.guards.fence([{ environmentId, key, cutoffMs: NOW - 5 }]);
    const fenced = ['refused: fenced', 'refused: fenced'];
    const from = 'anonymous:a';
    expect(await identify(from, 'steam:s', NOW)).toEqual(fenced);
    expect(await apply({ link: 'identify', from, to: 'steam:s', receivedAt: NOW + 1, eventTime: NOW })).toEqual(fenced);
    expect(await identify(from, 'steam:s', NOW + 1)).toEqual(['linked', 'linked']);
  });

  it('a redelivered fact returns its recorded decision until the decision is trimmed', async () => {
    const facts = [1, 2, 3].map((at) =>
      scenario.position({ link: 'identify', from: `anonymous:${at}`, to: 'untyped:u' }),
    );
    const block = { generation: 0, partition: 3, after: -1, through: 4, facts };
    const first = await graph.apply(block);
    const digest = await people.rebuild.digest(scenario.environmentId);
    expect(await graph.apply(block)).toEqual(first);
    expect(await graph.lastApplied(block)).toBe(4);
    await graph.trim(block, 1, [scenario.environmentId]);
    expect(await graph.apply(block)).toEqual([{ kind: 'done' }, { kind: 'done' }, first[2]]);
    expect(await people.rebuild.digest(scenario.environmentId)).toBe(digest);
  });

  it('notes are stored per partition and generation', async () => {
    const source = { generation: 0, partition: 3 };
    expect(await graph.readNote(source)).toBeNull();
    const note = { mark: [1, 2, 3], decisions: { '0': 7 } };
    await graph.note(source, note);
    await graph.note({ ...source, generation: 1 }, { mark: null, decisions: null });
    expect(await graph.readNote(source)).toEqual(note);
    expect(await graph.lastApplied(source)).toBe(-1);
    expect(await graph.readNote({ ...source, partition: 4 })).toBeNull();
  });

  it('the same offset in another partition or generation is a different fact', async () => {
    const fact = scenario.position({ link: 'identify', from: 'anonymous:a', to: 'untyped:u' });
    const block = { generation: 0, partition: 0, after: -1, through: fact.offset, facts: [fact] };
    await graph.apply(block);
    await graph.trim(block, fact.offset, [scenario.environmentId]);
    for (const source of [{ partition: 1 }, { generation: 1 }]) {
      const [applied] = await graph.apply({ ...block, ...source });
      expect(applied).toMatchObject({ kind: 'decided', decisions: [{ outcome: 'unchanged' }] });
    }
  });

  it('apply throws GraphBehindFault when the graph has applied fewer facts than the caller expects', async () => {
    const fact = scenario.position({ link: 'identify', from: 'anonymous:a', to: 'untyped:u' });
    const block = { generation: 0, partition: 0, through: 9, facts: [fact] };
    const fault = await graph.apply({ ...block, after: 0 }).catch((error: unknown) => error);
    expect(fault).toBeInstanceOf(GraphBehindFault);
    expect((fault as GraphBehindFault).applied).toBe(-1);
    expect(await rootOf('anonymous:a')).toBeNull();
  });

  it.each([
    ['a new identity', 'epic:z'],
    ['a member', 'anonymous:a'],
  ] as const)('an erased root rejoins its former person when it is linked again with %s', async (_, to) => {
    await reopen();
    const { environmentId } = scenario;
    const [root, a, b, z] = (['steam:r', 'anonymous:a', 'custom:b', to] as const).map(scenario.keyOf);
    await people.guards.fence([{ environmentId, key: root!, cutoffMs: NOW }]);
    const member = { environmentId, root: root!, linkedAt: NOW + 1 };
    await people.rebuild.loadOverrides([
      { ...member, key: a!, kind: 'anonymous' },
      { ...member, key: b!, kind: 'custom' },
    ]);
    await people.rebuild.mintEpoch();
    await alias('steam:r', to, NOW + 2);
    const allKeys = [root!, a!, b!, ...(to === 'epic:z' ? [z!] : [])].sort(Buffer.compare);
    for (const key of allKeys) {
      expect((await graph.membersOf(environmentId, key)).map((each) => each.key)).toEqual(allKeys);
      expect(await graph.rootOf(environmentId, key)).toEqual(root);
    }
  });

  it('forget removes held identities, and the remaining members keep the person key', async () => {
    for (const from of ['anonymous:a', 'anonymous:b', 'anonymous:c'] as const) await identify(from, 'steam:s');
    await alias('custom:k', 'steam:s');
    await identify('anonymous:z', 'epic:e');
    const { environmentId, keyOf } = scenario;
    // The person key is the smaller of the typed and untyped keys.
    const erased = (['anonymous:a', 'custom:k', 'steam:s', 'untyped:s'] as const).map(keyOf);
    const kept = (['anonymous:b', 'anonymous:c'] as const).map(keyOf).sort(Buffer.compare);
    const root = (await graph.rootOf(environmentId, kept[0]!))!;
    await people.guards.fence(erased.map((key) => ({ environmentId, key, cutoffMs: NOW })));
    const erasure = { environmentId, erasureId: randomBytes(16) };
    await people.guards.putHold({ ...erasure, keys: erased, cutoffMs: NOW, lapsesAtMs: null });
    expect(await graph.forget(erasure, [...erased, randomBytes(16)])).toBe(4);
    expect(await graph.forget(erasure, erased)).toBe(0);
    await people.guards.releaseHold(erasure);
    // Without a hold, the graph may contain newer links.
    await expect(graph.forget(erasure, kept)).rejects.toThrow(MissingHoldFault);
    for (const key of erased) {
      expect(await graph.rootOf(environmentId, key)).toBeNull();
      expect(await graph.membersOf(environmentId, key)).toEqual([]);
    }
    for (const key of kept) {
      expect(await graph.rootOf(environmentId, key)).toEqual(root);
      expect((await graph.membersOf(environmentId, key)).map((member) => member.key)).toEqual(kept);
    }
    expect(await graph.membersOf(environmentId, keyOf('epic:e'))).toHaveLength(3);
    // Removed identities no longer count toward unique types; otherwise this link would be refused.
    expect(await identify('anonymous:c', 'custom:l', NOW + 1)).toEqual(['linked', 'linked']);
  });

  it('apply requires an epoch, and loading requires a store without an epoch', async () => {
    await reopen();
    const block = { generation: 0, partition: 0, after: -1, through: 0, facts: [] };
    expect(await people.readEpoch()).toBeNull();
    expect(await people.ready()).toBe(false);
    await expect(graph.apply(block)).rejects.toBeInstanceOf(MissingEpochFault);
    await expect(graph.lastApplied(block)).rejects.toBeInstanceOf(MissingEpochFault);
    const erasure = { environmentId: 'test', erasureId: randomBytes(16) };
    await expect(graph.forget(erasure, [randomBytes(16)])).rejects.toBeInstanceOf(MissingEpochFault);
    const key = randomBytes(16);
    const rows = [{ environmentId: 'test', key, root: key, kind: 'custom', linkedAt: NOW }] as const;
    await people.rebuild.loadOverrides(rows);
    const epoch = await people.rebuild.mintEpoch();
    expect(await people.rebuild.mintEpoch()).toBe(epoch);
    expect(await people.readEpoch()).toBe(epoch);
    expect(await people.ready()).toBe(true);
    await expect(people.rebuild.loadOverrides(rows)).rejects.toBeInstanceOf(EpochPresentFault);
    await expect(people.rebuild.loadApplied(block, 1)).rejects.toBeInstanceOf(EpochPresentFault);
  });
});
