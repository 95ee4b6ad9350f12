import fc from 'fast-check';
import { expect, it } from 'vitest';
import { findFree } from '../batch-loop.ts';
import { createKeys, ENVIRONMENT, openWorld, STEP_MS, T, toEvent } from '../test/overlap-world.ts';
import { beginBatch, finishBatch, toBatches } from './erase-batch.ts';

const { signal } = new AbortController();
const PEOPLE = 5;
type Command =
  | { readonly type: 'link'; readonly a: number; readonly b: number }
  | { readonly type: 'request'; readonly person: number }
  | { readonly type: 'decide'; readonly links: number }
  | { readonly type: 'begin'; readonly requestsMax: number }
  | { readonly type: 'finish'; readonly batchIndex: number };

const person = fc.nat({ max: PEOPLE - 1 });
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ type: fc.constant('link' as const), a: person, b: person }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('request' as const), person }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('decide' as const), links: fc.integer({ min: 1, max: 4 }) }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('begin' as const), requestsMax: fc.constantFrom(1, 2, 9) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('finish' as const), batchIndex: fc.nat({ max: 2 }) }) },
);

interface Requested {
  readonly person: number;
  readonly at: number;
  readonly id: string;
}

/** Runs a program until all erasures are finished, and records the results. */
async function runProgram(program: readonly Command[]) {
  const world = await openWorld();
  const { log, parts, records, rows, requestErasure, tick, runLinker } = world;
  const keys = createKeys(PEOPLE);
  const indexOf = (key: Buffer) => keys.findIndex((each) => each.equals(key));
  const links: { a: number; b: number; at: number }[] = [];
  const requested: Requested[] = [];
  const erased = new Map<string, { ids: Set<number>; cutoffAt: number; endMs: number }>();
  const begin = async (requestsMax: number) => {
    const free = (await findFree(records)).slice(0, requestsMax);
    const batch = free.length === 0 ? null : await beginBatch(parts, free, signal);
    for (const { keys: found, request } of (batch?.persons ?? []).flatMap(({ closures }) => closures)) {
      const { erasureId, cutoffAt } = request;
      const closure = { ids: new Set(found.map(indexOf)), cutoffAt, endMs: Number.POSITIVE_INFINITY };
      erased.set(erasureId.toString('hex'), closure);
    }
  };
  const finish = async (batchIndex: number) => {
    const batches = toBatches(await records.readProgress(), await records.readUnfinished());
    const batch = batches[batchIndex % batches.length];
    if (batch === undefined) return;
    for (const { erasureId, visiblyErasedAt } of await finishBatch(parts, batch, signal))
      erased.get(erasureId.toString('hex'))!.endMs = visiblyErasedAt;
  };
  for (const step of program) {
    const at = tick();
    for (const [name, key] of keys.entries()) rows.add('events', { ...toEvent(key, at), name });
    if (step.type === 'link' && step.a !== step.b) {
      links.push({ ...step, at });
      log.push({ a: keys[step.a]!, b: keys[step.b]!, at });
    }
    if (step.type === 'request')
      requested.push({
        person: step.person,
        at,
        id: (await requestErasure(keys[step.person]!, at, at)).erasureId.toString('hex'),
      });
    if (step.type === 'decide') await runLinker(step.links);
    if (step.type === 'begin') await begin(step.requestsMax);
    if (step.type === 'finish') await finish(step.batchIndex);
  }
  for (let round = 0; (await records.readUnfinished()).length > 0; round++) {
    if (round > 50) throw new Error('the erasures do not finish');
    await finish(0);
    await begin(9);
  }
  while ((await records.readProgress()).length > 0) await finish(0);
  for (let round = 0; round < 3; round++) await runLinker();
  return { ...world, keys, links, requested, erased };
}

function reach(from: number, links: readonly { a: number; b: number }[]): Set<number> {
  const reached = new Set([from]);
  for (let size = 0; size < reached.size; ) {
    size = reached.size;
    for (const { a, b } of links) if (reached.has(a) || reached.has(b)) reached.add(a).add(b);
  }
  return reached;
}

it('overlapping erasures erase exactly the people who were linked at the time of each request', async () => {
  const property = fc.asyncProperty(fc.array(command, { minLength: 4, maxLength: 24 }), async (program) => {
    const { people, rows, keys, links, requested, erased } = await runProgram(program);
    const done = [...erased.values()];
    const isErasedBefore = ({ a, b, at }: (typeof links)[number], requestedAt: number) =>
      done.some(({ ids, cutoffAt, endMs }) => endMs < requestedAt && at <= cutoffAt && (ids.has(a) || ids.has(b)));
    const events = new Set(rows.rowsOf('events').map(({ name, received_at }) => `${name} ${received_at}`));
    const mayBeErased = new Set<string>();
    for (const { person: subject, at: requestedAt } of requested) {
      const linked = links.filter(({ at }) => at <= requestedAt);
      const remaining = linked.filter((link) => !isErasedBefore(link, requestedAt));
      for (const each of reach(subject, remaining)) {
        // Erased for this request or for a request with a later cut-off.
        expect(done.some(({ ids, cutoffAt }) => cutoffAt >= requestedAt && ids.has(each))).toBe(true);
        for (let at = T + STEP_MS; at <= requestedAt; at += STEP_MS) expect(events).not.toContain(`${each} ${at}`);
      }
      // People whom an erasure separated may still be treated as linked for requests during a third erasure.
      for (const each of reach(subject, linked))
        for (let at = T + STEP_MS; at <= requestedAt; at += STEP_MS) mayBeErased.add(`${each} ${at}`);
    }
    const steps = program.length;
    for (let at = T + STEP_MS; at <= T + steps * STEP_MS; at += STEP_MS)
      for (const each of keys.keys()) if (!mayBeErased.has(`${each} ${at}`)) expect(events).toContain(`${each} ${at}`);
    expect(await people.guards.listHolds(ENVIRONMENT)).toEqual([]);
    const isErased = ({ a, b, at }: (typeof links)[number]) =>
      done.some(({ ids, cutoffAt }) => at <= cutoffAt && (ids.has(a) || ids.has(b)));
    for (const link of links.filter((each) => !isErased(each))) {
      const members = await people.graph.membersOf(ENVIRONMENT, keys[link.a]!);
      expect(members.map(({ key }) => key)).toContainEqual(keys[link.b]!);
    }
  });
  await fc.assert(property, { numRuns: 500 });
});
