import { randomBytes } from 'node:crypto';
import { IDENTITY_TYPES, type IdentityDecisionRecord, identityDecisionCodec } from '@playline/contracts';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Applied } from './graph.ts';
import type { Cutoff } from './guards.ts';
import type { GraphFact } from './identities/steps.ts';
import type { People } from './people.ts';
import { rebuildGraph, toOverrides, toUnlinkSides } from './rebuild.ts';
import { openMemoryPeople } from './test/memory/index.ts';
import { createScenario, describeValue, type FactOptions, type Name, type Scenario } from './test/scenario.ts';
import { openTestPeople } from './test/test-people.ts';

// Small limits and few names, so that links often conflict, fail and merge.
const limits = { identitiesMax: 6, anonymousIdsMax: 2, anonymousWindowMs: 10, uniqueTypes: ['passport'] as const };
const wide = { ...limits, identitiesMax: 1_000, anonymousIdsMax: 1_000 };
const NAMES: Name[] = [
  ...(['a1', 'a2', 'a3', 'a4', 'a5'] as const).map((id): Name => `anonymous:${id}`),
  ...(['passport', 'steam', 'epic', 'untyped'] as const).flatMap((kind) => [`${kind}:x`, `${kind}:y`] as Name[]),
  'untyped:null',
];
const TIME_MAX = 1_020;
const time = fc.integer({ min: 1_000, max: TIME_MAX });
const anonymousName = fc.constantFrom(...NAMES.slice(0, 5));
const userName = fc.constantFrom(...NAMES.slice(5));
const link: fc.Arbitrary<FactOptions> = fc
  .record({
    link: fc.constantFrom('identify', 'alias'),
    device: fc.option(anonymousName),
    from: userName,
    to: userName,
    at: time,
  })
  .map(({ link, device, from, to, at }) => ({
    link,
    to,
    receivedAt: at,
    eventTime: at - 3,
    ...(link === 'alias' ? { from } : device !== null && { from: device }),
  }))
  .filter((options) => options.from !== options.to);
const unlink: fc.Arbitrary<FactOptions> = fc.record({
  link: fc.constant('unlink'),
  to: fc.oneof(anonymousName, userName),
  and: fc.array(fc.constantFrom(...NAMES), { maxLength: 2 }),
  receivedAt: time,
  eventTime: fc.constant(2_000),
});
const fact = fc.oneof({ weight: 8, arbitrary: link }, { weight: 1, arbitrary: unlink });

type Command =
  | { kind: 'facts'; facts: FactOptions[] }
  | { kind: 'redeliver'; back: number }
  | { kind: 'trim'; back: number }
  | { kind: 'erase'; name: Name }
  | { kind: 'fence' | 'hold' | 'release'; name: Name; cutoffMs: number };
const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant('facts'), facts: fc.array(fact, { minLength: 1, maxLength: 40 }) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('redeliver'), back: fc.nat(60) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('trim'), back: fc.nat(60) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('erase'), name: fc.constantFrom(...NAMES) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constantFrom('fence', 'hold', 'release'),
      name: fc.constantFrom(...NAMES),
      cutoffMs: time,
    }),
  },
);

const inRedis = openTestPeople();
let redis: People;
let wideRedis: People;
let rebuilt: People;
let namespace: string;
// Each run has its own partitions, because the applied offsets outlive a run.
let partitions = 0;

beforeAll(async () => {
  ({ people: redis, namespace } = await inRedis.open({ limits }));
  ({ people: wideRedis } = await inRedis.open({ namespace, limits: wide }));
  ({ people: rebuilt } = await inRedis.open({ limits }));
  await redis.rebuild.mintEpoch();
});
afterAll(inRedis.close);

const postpone = (fact: FactOptions, byMs: number): FactOptions => ({
  ...fact,
  receivedAt: fact.receivedAt! + byMs,
  eventTime: fact.eventTime! + byMs,
});

/** The end of an erasure: fences and forgets all members of the person, and repeats that after an interruption. */
async function erase(stores: People[], { environmentId, keyOf }: Scenario, of: { name: Name; cutoffMs: number }) {
  const members = await stores[0]!.graph.membersOf(environmentId, keyOf(of.name));
  const keys = members.length === 0 ? [keyOf(of.name)] : members.map(({ key }) => key);
  const cutoffs = keys.map((key) => ({ environmentId, key, cutoffMs: of.cutoffMs }));
  const erasure = { environmentId, erasureId: randomBytes(16) };
  for (const { guards, graph } of stores) {
    await guards.putHold({ ...erasure, keys, cutoffMs: of.cutoffMs, lapsesAtMs: null });
    await guards.fence(cutoffs);
    await graph.forget(erasure, keys.slice(1));
    await graph.forget(erasure, keys);
    await guards.releaseHold(erasure);
    for (const key of keys) expect(await graph.rootOf(environmentId, key)).toBeNull();
  }
  return cutoffs;
}

/** A fence without an erasure: linked identities stay. It applies to decisions after the offset `behind`. */
type FenceAt = Cutoff & { readonly behind: number };

/** Sides of unlinks in the table. Its writer leaves out fenced identities. */
const toStoredSides = (fenced: readonly FenceAt[]) => (decision: IdentityDecisionRecord) =>
  toUnlinkSides(decision).filter(
    ({ key }) =>
      !fenced.some(
        (fence) =>
          fence.key.equals(key) &&
          decision.offset > fence.behind &&
          Math.min(decision.receivedAt, decision.eventTime) <= fence.cutoffMs,
      ),
  );

/** Runs commands on several stores like one linker, and records the results. */
function createRun(stores: People[]) {
  const scenario = createScenario();
  const source = { generation: 0, partition: partitions++ };
  const facts: GraphFact[] = [];
  const erased: Cutoff[] = [];
  const fenced: FenceAt[] = [];
  let known = -1;
  // Facts after an erasure are later than its cut-off.
  let laterBy = 0;

  const deliver = async (block: GraphFact[]): Promise<Applied[]> => {
    const through = facts.at(-1)!.offset;
    const results = [];
    for (const { graph } of stores) results.push(await graph.apply({ ...source, after: known, through, facts: block }));
    known = through;
    for (const result of results) expect(describeValue(result)).toEqual(describeValue(results[0]));
    return results[0]!;
  };
  const guard = async (step: Extract<Command, { cutoffMs: number }>) => {
    const [environmentId, key] = [scenario.environmentId, scenario.keyOf(step.name)];
    const [name, { cutoffMs }] = [{ environmentId, erasureId: key }, step];
    if (step.kind === 'fence') fenced.push({ environmentId, key, cutoffMs, behind: known });
    for (const { guards } of stores) {
      if (step.kind === 'fence') await guards.fence([{ environmentId, key, cutoffMs }]);
      else if (step.kind === 'hold') await guards.putHold({ ...name, keys: [key], cutoffMs, lapsesAtMs: null });
      else await guards.releaseHold(name);
    }
  };
  const run = async (step: Command): Promise<{ facts: GraphFact[]; applied: Applied[] }> => {
    const none = { facts: [], applied: [] };
    if (step.kind === 'facts') {
      const fresh = step.facts.map((fact) => scenario.position(postpone(fact, laterBy)));
      facts.push(...fresh);
      return { facts: fresh, applied: await deliver(fresh) };
    }
    if (step.kind === 'erase') {
      erased.push(...(await erase(stores, scenario, { name: step.name, cutoffMs: TIME_MAX + laterBy })));
      laterBy += 100;
    } else if ('cutoffMs' in step) await guard(step);
    else if (facts.length > 0 && step.kind === 'trim')
      for (const { graph } of stores) await graph.trim(source, known - step.back, [scenario.environmentId]);
    else if (facts.length > 0) await deliver(facts.slice(-step.back - 1));
    return none;
  };
  const digests = () => Promise.all(stores.map(({ rebuild }) => rebuild.digest(scenario.environmentId)));
  return { scenario, run, digests, erased, fenced };
}

/** Decisions encoded for the log and decoded again. */
function toLog(
  run: ReturnType<typeof createRun>,
  done: { facts: GraphFact[]; applied: Applied[] },
): IdentityDecisionRecord[] {
  return done.facts
    .flatMap((of, at) => {
      const applied = done.applied[at]!;
      return applied.kind === 'decided' ? run.scenario.toRecords(of, applied.decisions) : [];
    })
    .map((record) => identityDecisionCodec.decode(identityDecisionCodec.encode(record)));
}

/** The later half of the log, with some rows repeated. The table has the older rows, which overlap. */
function toSources(
  log: readonly IdentityDecisionRecord[],
  { erased: fences, fenced }: { erased: readonly Cutoff[]; fenced: readonly FenceAt[] },
) {
  const toRows = (decisions: readonly IdentityDecisionRecord[]) =>
    decisions.flatMap((one) => toOverrides(one, BigInt(one.offset) * 256n + BigInt(one.step)));
  const half = Math.floor(log.length / 2);
  const sides = log.map(toStoredSides(fenced));
  const stored = new Map(toRows(log.slice(0, half + 3)).map((row) => [row.key.toString('hex'), row]));
  return {
    fences,
    stored: stored.values(),
    unlinks: sides.slice(0, half + 3).flat(),
    decided: [],
    later: [...toRows([...log.slice(half), ...log.slice(0, 5)]), ...sides.slice(half).flat()],
    applied: [],
  };
}

async function rootsOf({ graph }: People, run: ReturnType<typeof createRun>, names: Name[]) {
  const { environmentId, keyOf } = run.scenario;
  return Promise.all(names.map(async (name) => (await graph.rootOf(environmentId, keyOf(name)))?.toString('hex')));
}

describe('the identity graph in Redis, for any facts, batches, redeliveries, fences, holds and erasures', () => {
  it('decides as the plain model does, and rebuilds to the same digest from its decisions alone', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(command, { minLength: 1, maxLength: 12 }), async (commands) => {
        const model = openMemoryPeople(limits);
        await model.rebuild.mintEpoch();
        const run = createRun([redis, model]);
        const log: IdentityDecisionRecord[] = [];
        for (const step of commands) log.push(...toLog(run, await run.run(step)));
        const [digest, digestOfModel] = await run.digests();
        expect(digest).toBe(digestOfModel);
        await rebuildGraph(rebuilt, toSources(log, run));
        expect(await rebuilt.rebuild.digest(run.scenario.environmentId)).toBe(digest);
        const memory = openMemoryPeople(limits);
        await rebuildGraph(memory, toSources(log, run));
        expect(await memory.rebuild.digest(run.scenario.environmentId)).toBe(digest);
      }),
      { numRuns: runsOf({ quick: 30, all: 80 }) },
    );
  });

  it('roots every component at one of its members, agrees with it about its members, and leaves no other', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fact, { minLength: 1, maxLength: 80 }), async (facts) => {
        const run = createRun([redis]);
        await run.run({ kind: 'facts', facts });
        const { environmentId, keyOf } = run.scenario;
        const roots = new Set<string>();
        for (const key of NAMES.map(keyOf)) {
          const members = (await redis.graph.membersOf(environmentId, key)).map((member) => member.key);
          if (members.length === 0) continue;
          const root = (await redis.graph.rootOf(environmentId, key))!;
          roots.add(root.toString('hex'));
          expect(members).toContainEqual(root);
          expect(members).toContainEqual(key);
          for (const member of members) expect(await redis.graph.rootOf(environmentId, member)).toEqual(root);
        }
        const prefix = Buffer.from(`${namespace}m:{${environmentId}}:`);
        const stored = new Set<string>();
        for await (const names of inRedis.redis.scanBufferStream({ match: `${prefix}*`, count: 10_000 }))
          for (const name of names as Buffer[]) stored.add(name.subarray(prefix.length).toString('hex'));
        expect(stored).toEqual(roots);
      }),
      { numRuns: 30 },
    );
  });

  it('gives the same components in any order and batching where nothing is refused, and links idempotently', async () => {
    const names = IDENTITY_TYPES.flatMap((type) => ['1', '2', '3'].map((id): Name => `${type}:${id}`)).slice(3);
    const link = fc.tuple(fc.constantFrom(...names), fc.constantFrom(...names)).filter(([from, to]) => from !== to);
    const links = fc.array(link, { minLength: 1, maxLength: 60 });
    const shuffled = links.chain((list) =>
      fc.tuple(
        fc.constant(list),
        fc.shuffledSubarray(list, { minLength: list.length }),
        fc.integer({ min: 1, max: 9 }),
      ),
    );
    const toAlias = ([from, to]: [Name, Name]): FactOptions => ({ link: 'alias', from, to });
    await fc.assert(
      fc.asyncProperty(shuffled, async ([list, other, size]) => {
        const run = createRun([wideRedis]);
        await run.run({ kind: 'facts', facts: list.map(toAlias) });
        const again = await run.run({ kind: 'facts', facts: other.map(toAlias) });
        for (const applied of again.applied)
          expect(applied).toMatchObject({ kind: 'decided', decisions: [{ outcome: 'unchanged' }] });
        const otherRun = createRun([wideRedis]);
        for (let at = 0; at < other.length; at += size)
          await otherRun.run({ kind: 'facts', facts: other.slice(at, at + size).map(toAlias) });
        const roots = await rootsOf(wideRedis, run, names);
        const otherRoots = await rootsOf(wideRedis, otherRun, names);
        // Keys differ between environments, so the partitions into components are compared.
        const together = (all: (string | undefined)[]) => all.map((root) => all.indexOf(root));
        expect(together(otherRoots)).toEqual(together(roots));
      }),
      { numRuns: runsOf({ quick: 20, all: 50 }) },
    );
  });
});
