import { randomBytes, randomUUID } from 'node:crypto';
import { openTestRedis, testRedis } from '@playline/testkit';
import { afterAll, expect, it, onTestFinished } from 'vitest';
import { cellOf } from './cells.ts';
import { DEFAULT_LIMITS, GraphBehindFault, type IdentityGraph, type Override } from './graph.ts';
import type { GraphFact } from './identities/steps.ts';
import { MissingEpochFault, type People } from './people.ts';
import { rebuildGraph, type VersionedOverride } from './rebuild.ts';
import { openRedisPeople } from './redis/index.ts';

const CELLS = 4;
/** Each partition has the facts of two cells: partition 0 those of cells 0 and 2. */
const PARTITIONS = 2;
const T = Date.UTC(2026, 0, 1);
const PREVIOUS_RUN = 'the previous run';

const root = `test-${randomUUID()}:`;
const { client: redis, deleteKeys, close } = openTestRedis();
afterAll(async () => {
  await deleteKeys(`${root}*`);
  close();
});

interface World {
  readonly people: People;
  readonly graph: IdentityGraph;
  readonly namespace: string;
  /** The environment in each cell. */
  readonly environmentIds: readonly string[];
}

async function open(): Promise<World> {
  const namespace = `${root}${randomUUID()}:`;
  const names = { namespace, linkTopic: 'links', consentTopic: 'consents' };
  const options = { ...testRedis(), ...names, cells: CELLS, limits: DEFAULT_LIMITS };
  const people = await openRedisPeople({ ...options, linkPartitions: async () => PARTITIONS });
  onTestFinished(() => people.close());
  await people.rebuild.mintEpoch();
  const found = new Map<number, string>();
  while (found.size < CELLS) {
    const id = `env-${randomBytes(4).toString('hex')}`;
    found.set(cellOf(id, CELLS), id);
  }
  const environmentIds = [...found].sort(([a], [b]) => a - b).map(([, id]) => id);
  return { people, graph: people.graph, namespace, environmentIds };
}

const newKey = () => randomBytes(16);

function toFact(environmentId: string, offset: number, [aKey, bKey]: readonly [Buffer, Buffer]): GraphFact {
  const step = { link: 'alias', aKind: 'custom', bKind: 'custom', aKey, bKey, blocked: false, otherKeys: [] } as const;
  return { environmentId, offset, receivedAt: T + offset, eventTime: T + offset, steps: [step] };
}

const source = (partition: number) => ({ generation: 0, partition });
const tagOf = (cell: number) => `{c${cell}/${CELLS}}`;

/** Applies a fact about two new identities for each environment, in order. */
async function applyTo(graph: IdentityGraph, partition: number, environmentIds: readonly string[], from = 0) {
  const facts = environmentIds.map((id, at) => toFact(id, from + at, [newKey(), newKey()]));
  const through = from + facts.length - 1;
  const applied = await graph.apply({ ...source(partition), after: from - 1, through, facts });
  return { facts, applied };
}

it('facts of several cells are applied as one block, whose results are in the order of the facts', async () => {
  const { graph, environmentIds } = await open();
  const [even, other] = [environmentIds[0]!, environmentIds[2]!];
  const order = Array.from({ length: 600 }, (_, at) => (at % 3 === 0 ? even : other));
  const facts = order.map((id, at) => toFact(id, at, [newKey(), newKey()]));
  const parts: number[] = [];
  const block = { ...source(0), after: -1, through: 700, facts };
  const applied = await graph.apply(block, (part) => parts.push(part.length));
  const linked = applied.map((each) => (each.kind === 'decided' ? each.decisions[0]!.aKey : null));
  expect(linked).toEqual(facts.map(({ steps }) => steps[0]!.aKey));
  expect(parts.reduce((sum, count) => sum + count, 0)).toBe(facts.length);
  expect(await graph.lastApplied(source(0))).toBe(700);
  expect(await graph.lastApplied(source(1))).toBe(-1);
  // A repeated block returns the recorded decisions.
  expect(await graph.apply(block)).toEqual(applied);
});

it('a partition resumes at the cell that lost the most facts, and the note of its last batch is kept', async () => {
  const { graph, namespace, environmentIds } = await open();
  const [lost, ahead] = [environmentIds[0]!, environmentIds[2]!];
  const notes = [1, 2].map((mark) => ({ mark: [mark], decisions: { 0: mark } }));
  await graph.note(source(0), notes[0]!, 1);
  const first = await applyTo(graph, 0, [lost, ahead]);
  const progress = `${namespace}identity:applied:${tagOf(0)}:links`;
  const saved = Object.entries(await redis.hgetall(progress)).flat();
  await graph.note(source(0), notes[1]!, 3);
  const second = await applyTo(graph, 0, [lost, ahead], 2);
  await redis.hset(progress, ...saved);
  expect(await graph.lastApplied(source(0))).toBe(1);
  expect(await graph.readNote(source(0))).toEqual({ mark: [2], decisions: { 0: 1 } });
  await expect(applyTo(graph, 0, [lost], 4)).rejects.toThrow(GraphBehindFault);
  const block = { ...source(0), after: 1, through: 3, facts: second.facts };
  expect((await graph.apply(block)).map(({ kind }) => kind)).toEqual(['decided', 'decided']);
  expect(first.applied.map(({ kind }) => kind)).toEqual(['decided', 'decided']);
});

it('only the environments of an emptied cell are unavailable, and a rebuild fills only this cell', async () => {
  const { people, graph, namespace, environmentIds } = await open();
  const overrides: VersionedOverride[] = [];
  for (const partition of [0, 1]) {
    const own = environmentIds.filter((_, cell) => cell % PARTITIONS === partition);
    const { applied } = await applyTo(graph, partition, own);
    for (const [at, result] of applied.entries())
      if (result.kind === 'decided')
        for (const { moved, root } of result.decisions)
          overrides.push(
            ...moved.map((row): VersionedOverride & Override => ({
              ...row,
              root,
              environmentId: own[at]!,
              version: 1n,
            })),
          );
  }
  const digests = () => Promise.all(environmentIds.map((id) => people.rebuild.digest(id)));
  const before = await digests();
  await deleteKeys(`${namespace}*${tagOf(0)}*`);
  expect(await people.readEpoch()).toBeNull();
  expect(await people.readEpoch(environmentIds[0])).toBeNull();
  expect(await people.readEpoch(environmentIds[1])).not.toBeNull();
  await expect(applyTo(graph, 0, [environmentIds[0]!], 2)).rejects.toThrow(MissingEpochFault);
  // The other partition continues, so its cell has a link that the rebuild's sources lack.
  await applyTo(graph, 1, [environmentIds[1]!], 2);
  const { run } = await people.guards.fenceStatus();
  const applied = [0, 1].map((partition) => ({ ...source(partition), offset: 1 }));
  const sources = { fences: [], later: [], stored: overrides, unlinks: [], decided: [], applied };
  expect(await rebuildGraph(people, sources)).toMatchObject({ fromTable: 2 });
  await people.rebuild.mintEpoch(run);
  const after = await digests();
  expect([after[0], after[2], after[3]]).toEqual([before[0], before[2], before[3]]);
  expect(after[1]).not.toBe(before[1]);
  expect(await people.ready()).toBe(true);
  expect(await graph.lastApplied(source(0))).toBe(1);
});

it('after a failover of one cell, only its fences and consents are restored', async () => {
  const { people, namespace, environmentIds } = await open();
  const { consents, guards } = people;
  await consents.markCurrent((await consents.syncState()).run, new Map([[0, 1]]));
  await redis.set(`${namespace}f:complete:${tagOf(1)}`, PREVIOUS_RUN);
  await redis.hset(`${namespace}c:log:${tagOf(1)}:consents`, 'run', PREVIOUS_RUN);
  const [status, state] = [await guards.fenceStatus(), await consents.syncState()];
  expect(status).toMatchObject({ isComplete: false, isRestorable: true });
  expect(state.isCurrent).toBe(false);
  const isSecond = environmentIds.map((_, cell) => cell === 1);
  expect(environmentIds.map(status.lacks)).toEqual(isSecond);
  expect(environmentIds.map(state.lags)).toEqual(isSecond);
  const key = newKey();
  expect(await consents.read(environmentIds[0]!, key)).toBeNull();
  await expect(consents.read(environmentIds[1]!, key)).rejects.toThrow('restarted');
  expect(await guards.completeFences(status.run)).toBe(true);
  expect(await consents.markCurrent(state.run, new Map())).toBe(true);
  expect(await consents.read(environmentIds[1]!, key)).toBeNull();
  expect(await guards.fenceStatus()).toMatchObject({ isComplete: true, isRestorable: false });
});

it('a cell without changes resumes at the offset that was noted for all cells', async () => {
  const { people, namespace } = await open();
  const { consents } = people;
  await consents.markCurrent((await consents.syncState()).run, new Map([[0, 1]]));
  await consents.noteApplied!(new Map([[0, 500]]));
  await redis.hset(`${namespace}c:log:${tagOf(1)}:consents`, 'run', PREVIOUS_RUN);
  await consents.noteApplied!(new Map([[0, 900]]));
  expect((await consents.syncState()).applied).toEqual(new Map([[0, 499]]));
});

it('a process with another number of cells finds no epoch', async () => {
  const { namespace } = await open();
  const other = await openRedisPeople({ ...testRedis(), namespace, cells: CELLS * 2 });
  onTestFinished(() => other.close());
  expect(await other.readEpoch()).toBeNull();
  const single = await openRedisPeople({ ...testRedis(), namespace, cells: 0 });
  onTestFinished(() => single.close());
  expect(await single.readEpoch()).toBeNull();
});

it('the identities of all cells are listed', async () => {
  const { people, graph, environmentIds } = await open();
  for (const partition of [0, 1])
    await applyTo(
      graph,
      partition,
      environmentIds.filter((_, cell) => cell % PARTITIONS === partition),
    );
  const found = new Set<string>();
  for await (const { environmentId } of people.rebuild.identities()) found.add(environmentId);
  expect([...found].sort()).toEqual([...environmentIds].sort());
});
