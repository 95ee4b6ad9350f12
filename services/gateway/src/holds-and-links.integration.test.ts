import { randomBytes, randomUUID } from 'node:crypto';
import type { Applied, ErasureHold, ErasureHolds, GraphFact, IdentityGraph } from '@playline/people';
import { openMemoryErasureHolds, openMemoryIdentityGraph } from '@playline/people/memory';
import { openRedisErasureHolds, openRedisIdentityGraph } from '@playline/people/redis';
import { testStores } from '@playline/testkit';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';

const T = Date.UTC(2026, 0, 1);
const LAPSES_AT = T + 60_000;
/** Few people and few erasures, so that holds overlap and links meet them. */
const PEOPLE = 7;
const ERASURES = 4;
const namespace = `test-${randomUUID()}:`;

let graph: IdentityGraph;
let holds: ErasureHolds;
// Each run has partitions of its own: what counts as applied outlives a run.
let partitions = 0;

beforeAll(async () => {
  const options = { url: testStores().redis, namespace };
  [graph, holds] = await Promise.all([openRedisIdentityGraph(options), openRedisErasureHolds(options)]);
  await graph.mintEpoch();
});
afterAll(async () => {
  await Promise.all([graph.close(), holds.close()]);
  const redis = new Redis(testStores().redis);
  for await (const names of redis.scanBufferStream({ match: `${namespace}*`, count: 10_000 }))
    if ((names as Buffer[]).length > 0) await redis.unlink(...(names as Buffer[]));
  await redis.quit();
});

const person = fc.nat({ max: PEOPLE - 1 });
const time = fc.integer({ min: T, max: T + 4 });
const link = fc.record({ a: person, b: person, at: time }).filter(({ a, b }) => a !== b);
const erasure = fc.nat({ max: ERASURES - 1 });
const command = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ act: fc.constant('link' as const), links: fc.array(link, { minLength: 1, maxLength: 8 }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      act: fc.constant('place' as const),
      erasure,
      keys: fc.uniqueArray(person, { minLength: 1, maxLength: 4 }),
      cutoffMs: time,
      lapsesAtMs: fc.option(fc.integer({ min: LAPSES_AT, max: LAPSES_AT + 2 })),
    }),
  },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('confirm' as const), erasure }) },
  { weight: 2, arbitrary: fc.record({ act: fc.constant('release' as const), erasure }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('lapse' as const) }) },
);
type Command = typeof command extends fc.Arbitrary<infer T> ? T : never;

/** The plain models of holds and graph; the graph is told what the holds come to. */
async function openModel(environmentId: string, people: readonly Buffer[]) {
  const model = { graph: openMemoryIdentityGraph(), holds: openMemoryErasureHolds() };
  await model.graph.mintEpoch();
  const tellGraph = async () => {
    for (const key of people) {
      const cutoffMs = model.holds.cutoffOf(environmentId, key);
      await model.graph.release(environmentId, key);
      if (cutoffMs !== null) await model.graph.hold({ environmentId, key, cutoffMs });
    }
  };
  return { ...model, tellGraph };
}

function toFact(environmentId: string, offset: number, link: { a: Buffer; b: Buffer; at: number }): GraphFact {
  const kinds = { aKind: 'custom', bKind: 'custom' } as const;
  const step = { link: 'alias', ...kinds, aKey: link.a, bKey: link.b, blocked: false, otherKeys: [] } as const;
  return { environmentId, offset, receivedAt: link.at, eventTime: link.at, steps: [step] };
}

/** With keys as text: a view of a reply's bytes and a buffer of its own are equal then. */
const describeApplied = (applied: readonly Applied[]): unknown =>
  JSON.parse(
    JSON.stringify(applied, (_, part) => (part?.type === 'Buffer' ? Buffer.from(part.data).toString('hex') : part)),
  );

it('holds placed, placed again, confirmed, released and lapsed in any order between links park what the plain model parks', async () => {
  const seen = { parked: 0, decided: 0, done: 0 };
  const property = fc.asyncProperty(fc.array(command, { minLength: 1, maxLength: 25 }), async (commands) => {
    const environmentId = `test-${randomUUID()}`;
    const people = Array.from({ length: PEOPLE }, () => randomBytes(16));
    const ids = Array.from({ length: ERASURES }, () => randomBytes(16));
    const model = await openModel(environmentId, people);
    const source = { generation: 0, partition: partitions++ };
    let offset = 0;

    const change = async (of: ErasureHolds, step: Exclude<Command, { act: 'link' }>): Promise<unknown> => {
      if (step.act === 'lapse') return of.dropLapsed(LAPSES_AT + 1);
      const name = { environmentId, erasureId: ids[step.erasure]! };
      if (step.act !== 'place') return of[step.act](name);
      const hold: ErasureHold = { ...name, ...step, keys: step.keys.map((at) => people[at]!) };
      return of.place(hold);
    };
    for (const step of commands) {
      if (step.act !== 'link') {
        const answers = [await change(holds, step), await change(model.holds, step)];
        expect(answers[0]).toEqual(answers[1]);
        await model.tellGraph();
        continue;
      }
      const after = offset - 1;
      const facts = step.links.map(({ a, b, at }) =>
        toFact(environmentId, offset++, { a: people[a]!, b: people[b]!, at }),
      );
      const block = { ...source, after, through: offset - 1, facts };
      const applied = await graph.apply(block);
      expect(describeApplied(applied)).toEqual(describeApplied(await model.graph.apply(block)));
      for (const { kind } of applied) seen[kind]++;
    }
    expect(await graph.digest(environmentId)).toBe(await model.graph.digest(environmentId));
    // What is left of holds in this run must not lapse in the next one.
    for (const erasureId of ids) await holds.release({ environmentId, erasureId });
    await holds.dropLapsed(LAPSES_AT + 10);
  });
  await fc.assert(property, { numRuns: 150 });
  expect(Math.min(seen.parked, seen.decided)).toBeGreaterThan(100);
});
