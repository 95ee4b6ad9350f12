import { randomBytes } from 'node:crypto';
import type { ErasureReceipt, ErasureRequest } from '@playline/erasure';
import { openMemoryErasureRecords, openMemoryErasureRows } from '@playline/erasure/memory';
import type { GraphFact, IdentityGraph, People } from '@playline/people';
import { type MemoryPeople, openMemoryPeople } from '@playline/people/memory';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { expect, it, vi } from 'vitest';
import { type BatchParts, beginBatch, finishBatch, toBatches } from './erase-batch.ts';

const T = Date.UTC(2026, 5, 15);
const ENVIRONMENT = 'env';
const PEOPLE = 6;
const SOURCE = { generation: 0, partition: 0 };

/** Numbers are indexes of people; `at` is a timestamp. */
interface Program {
  readonly links: readonly { a: number; b: number; at: number }[];
  readonly events: readonly { owner: number; device: number; at: number }[];
  readonly consents: readonly { subject: number; at: number }[];
  readonly requests: readonly { subject: number; cutoffAt: number }[];
  /** Number of store calls before each crash of the eraser. */
  readonly crashes: readonly number[];
}

class Crash extends Error {}

/** Wraps an object so that `crash` decides whether the caller crashes after each call. */
function withCrashes<T extends object>(object: T, crash: () => boolean): T {
  return new Proxy(object, {
    get(target, name) {
      const value = Reflect.get(target, name);
      if (typeof value !== 'function' || name === 'readFences' || name === 'findLinks') return value;
      return async (...args: unknown[]) => {
        const result = await value.apply(target, args);
        if (crash()) throw new Crash();
        return result;
      };
    },
  });
}

const toEventRow = ({ owner, device, at }: Program['events'][number], keys: readonly Buffer[]) => ({
  environment_id: ENVIRONMENT,
  identity_key: keys[owner]!,
  anonymous_key: keys[device]!,
  anonymous_id: `device ${device}`,
  from_key: Buffer.alloc(16),
  to_key: Buffer.alloc(16),
  event_time: at,
  received_at: at,
});

async function openWorld(program: Program) {
  const keys = Array.from({ length: PEOPLE }, () => randomBytes(16));
  const people: MemoryPeople = openMemoryPeople();
  await people.rebuild.mintEpoch();
  const [rows, records] = [openMemoryErasureRows(), openMemoryErasureRecords(() => 0)];
  let offset = 0;
  const apply = async ({ a, b, at }: Program['links'][number], first = offset) => {
    const step = { link: 'alias', aKind: 'custom', bKind: 'custom', blocked: false, otherKeys: [] } as const;
    const fact = {
      environmentId: ENVIRONMENT,
      offset,
      receivedAt: at,
      eventTime: at,
      steps: [{ ...step, aKey: keys[a]!, bKey: keys[b]! }],
    } as unknown as GraphFact;
    const [applied] = await people.graph.apply({ ...SOURCE, after: offset - 1, through: offset, facts: [fact] });
    offset++;
    return { applied: applied!, first };
  };
  const storeLink = ({ a, b, at }: Program['links'][number], outcome: string) =>
    rows.add('identity_links', {
      environment_id: ENVIRONMENT,
      link_generation: 0,
      link_partition: 0,
      link_offset: facts.length - 1,
      outcome,
      message_id: facts.length - 1,
      a_key: keys[a]!,
      b_key: keys[b]!,
      person_key: Buffer.alloc(16),
      event_time: at,
      received_at: at,
    });
  const facts: Program['links'][number][] = [];
  for (const link of program.links) {
    facts.push(link);
    const { applied } = await apply(link);
    if (applied.kind === 'decided') storeLink(link, applied.decisions[0]!.outcome);
  }
  for (const [at, event] of program.events.entries()) rows.add('events', { name: at, ...toEventRow(event, keys) });
  for (const [at, { subject, at: receivedAt }] of program.consents.entries()) {
    const position = { partition: 0, offset: at, loggedAtMs: receivedAt };
    const consent = {
      environmentId: ENVIRONMENT,
      identityKey: keys[subject]!,
      status: 'full',
      receivedAt,
      position,
    } as const;
    await people.consents.apply(consent);
    rows.add('consent_log', {
      environment_id: ENVIRONMENT,
      identity_key: keys[subject]!,
      status: 'full',
      received_at: receivedAt,
      kafka_partition: 0,
      kafka_offset: at,
      logged_at: receivedAt,
    });
  }
  return { keys, people, rows, records, apply, facts };
}

type World = Awaited<ReturnType<typeof openWorld>>;

function toParts(world: World, waiting: number[], crash: () => boolean): BatchParts {
  const { people, rows, records } = world;
  const stored = withCrashes(
    { linksStored: async () => [], allStored: async () => ENDS, linkCommits: async () => COMMITS },
    crash,
  );
  return {
    people: {
      graph: withCrashes<IdentityGraph>(people.graph, crash),
      guards: withCrashes<People['guards']>(people.guards, crash),
      consents: withCrashes<People['consents']>(people.consents, crash),
    },
    rows: withCrashes(rows, crash),
    records: withCrashes(records, crash),
    barrier: stored,
    republishLater: async (batchId) => {
      for (const { offset } of await rows.findLaterLinks(batchId)) waiting.push(offset);
      if (crash()) throw new Crash();
    },
    generation: 0,
    wallClockMs: () => T,
    pause: async () => {},
  };
}
const ENDS = { 'audience.messages.v1/0': 7 };
const COMMITS = new Map([[0, 1_000]]);

/** @returns the subject per erasure id */
async function erase(world: World, program: Program): Promise<ReadonlyMap<string, number>> {
  const requests = program.requests.map(({ subject, cutoffAt }): ErasureRequest => {
    const common = { environmentId: ENVIRONMENT, memberKeys: [], requestedAt: cutoffAt - 2_000, traceId: '' };
    return { erasureId: randomBytes(16), subjectKeys: [world.keys[subject]!], cutoffAt, ...common };
  });
  for (const request of requests) {
    const { erasureId, subjectKeys, cutoffAt } = request;
    const hold = { environmentId: ENVIRONMENT, erasureId, keys: subjectKeys, cutoffMs: cutoffAt, lapsesAtMs: null };
    await world.people.guards.putHold(hold);
  }
  await world.records.putRequests(requests);
  const waiting: number[] = [];
  const crashes = [...program.crashes];
  for (;;) {
    let callsLeft = crashes.shift() ?? Number.POSITIVE_INFINITY;
    const parts = toParts(world, waiting, () => callsLeft-- === 0);
    const { signal } = new AbortController();
    try {
      const progress = await parts.records.readProgress();
      const unfinished = await parts.records.readUnfinished();
      const batches = toBatches(progress, unfinished);
      if (batches.length === 0 && unfinished.length > 0) batches.push((await beginBatch(parts, unfinished, signal))!);
      for (const batch of batches) await finishBatch(parts, batch, signal);
      break;
    } catch (fault) {
      if (!(fault instanceof Crash)) throw fault;
    }
  }
  // Republished links are decided after the release.
  for (const at of [...new Set(waiting)].sort((a, b) => a - b)) await world.apply(world.facts[at]!);
  return new Map(requests.map(({ erasureId }, at) => [erasureId.toString('hex'), program.requests[at]!.subject]));
}

interface Erased {
  readonly people: Set<number>;
  cutoffAt: number;
}

const findOverlap = (persons: readonly Erased[]): readonly Erased[] =>
  persons
    .flatMap((one, at) => persons.slice(at + 1).map((other) => [one, other]))
    .find(([one, other]) => [...one!.people].some((each) => other!.people.has(each))) ?? [];

/** Computes the expected closures: everyone linked up to the cut-off. Overlapping requests use the latest cut-off. */
function expectErased({ links, requests }: Program, applied: readonly boolean[]) {
  let persons = requests.map(({ subject, cutoffAt }): Erased => ({ people: new Set([subject]), cutoffAt }));
  for (let hasGrown = true; hasGrown; ) {
    hasGrown = false;
    for (const person of persons)
      for (const [at, link] of links.entries()) {
        const isErasedLink = person.people.has(link.a) !== person.people.has(link.b) && link.at <= person.cutoffAt;
        if (!isErasedLink || !applied[at]) continue;
        person.people.add(link.a).add(link.b);
        hasGrown = true;
      }
    const [first, second] = findOverlap(persons);
    if (first === undefined || second === undefined) continue;
    first.cutoffAt = Math.max(first.cutoffAt, second.cutoffAt);
    for (const each of second.people) first.people.add(each);
    persons = persons.filter((person) => person !== second);
    hasGrown = true;
  }
  return (subject: number) => persons.find((person) => person.people.has(subject));
}

const personIndex = fc.nat({ max: PEOPLE - 1 });
const timestamp = fc.integer({ min: T - 3, max: T + 3 });
const program: fc.Arbitrary<Program> = fc.record({
  links: fc.array(fc.record({ a: personIndex, b: personIndex, at: timestamp }), { maxLength: 8 }),
  events: fc.array(fc.record({ owner: personIndex, device: personIndex, at: timestamp }), { maxLength: 8 }),
  consents: fc.array(fc.record({ subject: personIndex, at: timestamp }), { maxLength: 5 }),
  requests: fc.array(fc.record({ subject: personIndex, cutoffAt: fc.integer({ min: T - 1, max: T + 1 }) }), {
    minLength: 1,
    maxLength: 3,
  }),
  crashes: fc.array(fc.nat({ max: 70 }), { maxLength: 3 }),
});

type Link = Program['links'][number];

/** Expected result of a program: the erased persons and their cut-offs. */
function createRules(run: Program, applied: readonly boolean[]) {
  const personOf = expectErased(run, applied);
  const cutoffOf = (subject: number) => personOf(subject)?.cutoffAt ?? Number.NEGATIVE_INFINITY;
  const isErased = ({ a, b, at }: Link) => at <= Math.max(cutoffOf(a), cutoffOf(b));
  const isSharedByTwo = ({ a, b, at }: Link) => at <= Math.min(cutoffOf(a), cutoffOf(b)) && personOf(a) !== personOf(b);
  return { personOf, cutoffOf, isErased, isSharedByTwo };
}
type Rules = ReturnType<typeof createRules>;

function checkRows({ keys, rows }: World, run: Program, { cutoffOf }: Rules): void {
  const kept = run.events.flatMap(({ owner, device, at }, name) => {
    if (at <= cutoffOf(owner)) return [];
    return [[name, at <= cutoffOf(device) ? '' : `device ${device}`]];
  });
  expect(rows.rowsOf('events').map((row) => [row.name, row.anonymous_id])).toEqual(kept);
  const cutoffOfKey = (key: unknown) => cutoffOf(keys.findIndex((each) => each.equals(key as Buffer)));
  for (const { a_key, b_key, received_at } of rows.rowsOf('identity_links'))
    expect(Number(received_at)).toBeGreaterThan(Math.max(cutoffOfKey(a_key), cutoffOfKey(b_key)));
}

/** Checks that links and consents later than the cut-offs are kept. */
async function checkPeople({ keys, people }: World, run: Program, rules: Rules & { applied: readonly boolean[] }) {
  for (const [at, link] of run.links.entries()) {
    if (!rules.applied[at] || rules.isErased(link) || link.a === link.b) continue;
    const members = await people.graph.membersOf(ENVIRONMENT, keys[link.a]!);
    expect(members.map(({ key }) => key)).toContainEqual(keys[link.b]!);
  }
  for (const [subject, key] of keys.entries()) {
    const isKept = run.consents.some((consent) => consent.subject === subject && consent.at > rules.cutoffOf(subject));
    const stored = await people.consents.read(ENVIRONMENT, key);
    expect([subject, stored !== null]).toEqual([subject, isKept]);
  }
}

async function checkRecords(
  { people, rows, records }: World,
  run: Program,
  { personOf, isErased, isSharedByTwo, requested }: Rules & { requested: ReadonlyMap<string, number> },
) {
  expect(await records.readUnfinished()).toEqual([]);
  expect(await records.readProgress()).toEqual([]);
  expect(await rows.readBatches()).toEqual([]);
  expect(await people.guards.listHolds(ENVIRONMENT)).toEqual([]);
  const receipts: ErasureReceipt[] = await records.readOpenReceipts();
  expect(receipts).toHaveLength(run.requests.length);
  // All receipts of a person have the same counts. A row that belongs to two persons is counted for each of them.
  const byPerson = new Map(
    receipts.map((receipt) => [personOf(requested.get(receipt.erasureId.toString('hex'))!), receipt]),
  );
  const sumOf = (store: string) => [...byPerson.values()].reduce((sum, { deleted }) => sum + (deleted[store] ?? 0), 0);
  expect(sumOf('clickhouse.events')).toBe(run.events.length - rows.rowsOf('events').length);
  const links = run.links.filter(isErased).length + run.links.filter(isSharedByTwo).length;
  expect(sumOf('clickhouse.identity_links')).toBe(links);
}

it('a batch erases exactly its closures up to the cut-off, wherever the eraser crashes', async () => {
  const property = fc.asyncProperty(program, async (run) => {
    const world = await openWorld(run);
    const applied = run.links.map((_, at) =>
      world.rows.rowsOf('identity_links').some((row) => row.link_offset === at && row.outcome !== 'refused'),
    );
    const rules = createRules(run, applied);
    const requested = await erase(world, run);
    checkRows(world, run, rules);
    await checkPeople(world, run, { ...rules, applied });
    await checkRecords(world, run, { ...rules, requested });
  });
  await fc.assert(property, { numRuns: runsOf({ quick: 150, all: 600 }) });
});

const WRITES = ['forget', 'apply', 'fence', 'putHold', 'extendHold', 'trim'];

function watchCalls<S extends object>(object: S, names: readonly string[], onCall: (name: string) => void): S {
  return new Proxy(object, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function' || !names.includes(String(name))) return value;
      return async (...args: unknown[]) => {
        onCall(String(name));
        return value.apply(target, args);
      };
    },
  });
}

async function erasePerson({ keys, people, records }: World, parts: BatchParts): Promise<void> {
  const { signal } = new AbortController();
  const names = { erasureId: randomBytes(16), environmentId: ENVIRONMENT, subjectKeys: [keys[0]!], memberKeys: [] };
  await records.putRequests([{ ...names, cutoffAt: T, requestedAt: T, traceId: '' }]);
  await people.guards.putHold({ ...names, keys: names.subjectKeys, cutoffMs: T, lapsesAtMs: null });
  const batch = await beginBatch(parts, await records.readUnfinished(), signal);
  await finishBatch(parts, batch!, signal);
}

const ONE_EVENT = { links: [], consents: [], requests: [], crashes: [], events: [{ owner: 0, device: 1, at: T - 1 }] };

it('a batch is swept until no row remains, and only then gets a receipt', async () => {
  const world = await openWorld(ONE_EVENT);
  const { records, rows } = world;
  const leftAtReceipt: number[] = [];
  let sweeps = 0;
  await erasePerson(world, {
    ...toParts(world, [], () => false),
    // The first sweep misses the row, as if a merge moved it.
    rows: { ...rows, sweep: async (...args) => (++sweeps === 1 ? [] : rows.sweep(...args)) },
    records: {
      ...records,
      putReceipts: async (receipts) => {
        leftAtReceipt.push(rows.rowsOf('events').length);
        await records.putReceipts(receipts);
      },
    },
  });
  expect(leftAtReceipt).toEqual([0]);
});

it('a receipt counts the rows of both nodes, although one node failed after the other had deleted its rows', async () => {
  const events = Array.from({ length: 10 }, () => ({ owner: 0, device: 1, at: T - 1 }));
  const world = await openWorld({ ...ONE_EVENT, events });
  const [home, second] = [world.rows, openMemoryErasureRows()];
  for (const event of events.slice(0, 5)) second.add('events', toEventRow(event, world.keys));
  let failures = 1;
  const rows: BatchParts['rows'] = {
    ...home,
    putTargets: async (...args) => void (await Promise.all([home.putTargets(...args), second.putTargets(...args)])),
    async sweep(...args) {
      const found = await home.sweep(...args);
      if (failures-- > 0) throw new Crash();
      return [...found, ...(await second.sweep(...args))];
    },
    readFound: async (...args) => [...(await home.readFound(...args)), ...(await second.readFound(...args))],
    findSurvivors: async (...args) => [
      ...(await home.findSurvivors(...args)),
      ...(await second.findSurvivors(...args)),
    ],
  };
  const parts = { ...toParts(world, [], () => false), rows };
  await expect(erasePerson(world, parts)).rejects.toThrow(Crash);
  const { records } = world;
  const [batch] = toBatches(await records.readProgress(), await records.readUnfinished());
  await finishBatch(parts, batch!, new AbortController().signal);
  const [receipt] = await records.readOpenReceipts();
  expect(receipt!.deleted).toMatchObject({ 'clickhouse.events': 15, 'clickhouse.events.anonymous_key': 0 });
  expect(Object.keys(receipt!.deleted).filter((store) => store.includes('@'))).toEqual([]);
});

it('a batch runs its steps in order', async () => {
  const world = await openWorld(ONE_EVENT);
  const order: string[] = [];
  const watched = <S extends object>(object: S, ...names: string[]): S =>
    watchCalls(object, names, (name) => order.push(name));
  const parts = toParts(world, [], () => false);
  const { graph, guards, consents } = parts.people;
  await erasePerson(world, {
    ...parts,
    pause: async (ms) => void order.push(`wait ${ms} ms`),
    people: { graph: watched(graph, 'forget'), guards: watched(guards, 'fence'), consents },
    barrier: watched(parts.barrier, 'allStored'),
    records: watched(parts.records, 'putFences', 'putReceipts'),
    rows: watched(parts.rows, 'awaitInserts', 'sweep'),
  });
  expect(order.slice(0, 9)).toEqual([
    ...['putFences', 'fence'],
    // All writers know the fences before the log's end offsets are read.
    ...['wait 5000 ms', 'allStored'],
    // Repeated because Redis may have lost its last second of writes.
    ...['putFences', 'fence', 'forget'],
    // ClickHouse may still run an insert of a crashed writer.
    ...['awaitInserts', 'sweep'],
  ]);
  expect(order.at(-1)).toBe('putReceipts');
});

it('the receipt is written at least two seconds after the last change in Redis', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  try {
    const person = { links: [{ a: 0, b: 1, at: T - 1 }], consents: [{ subject: 0, at: T - 1 }] };
    const world = await openWorld({ ...person, events: [], requests: [], crashes: [] });
    const { people, records, rows } = world;
    let changedMs = performance.now();
    const watched = <S extends object>(store: S): S =>
      watchCalls(store, WRITES, () => {
        changedMs = performance.now();
      });
    const receiptsAfterMs: number[] = [];
    const parts: BatchParts = {
      ...toParts(world, [], () => false),
      people: { graph: watched(people.graph), guards: watched(people.guards), consents: watched(people.consents) },
      rows: {
        ...rows,
        sweep: async (...args) => {
          vi.advanceTimersByTime(60_000);
          return rows.sweep(...args);
        },
      },
      records: {
        ...records,
        putReceipts: async (receipts) => {
          receiptsAfterMs.push(performance.now() - changedMs);
          await records.putReceipts(receipts);
        },
      },
      pause: async (ms) => void vi.advanceTimersByTime(ms),
    };
    await erasePerson(world, parts);
    expect(receiptsAfterMs).toEqual([expect.any(Number)]);
    expect(receiptsAfterMs[0]).toBeGreaterThanOrEqual(2_000);
  } finally {
    vi.useRealTimers();
  }
});
