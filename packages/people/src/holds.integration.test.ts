import { randomBytes } from 'node:crypto';
import { afterAll, describe, expect, it } from 'vitest';
import type { Override } from './graph.ts';
import type { GraphFact } from './identities/steps.ts';
import { openMemoryPeople } from './test/memory/index.ts';
import { describeValue } from './test/scenario.ts';
import { openTestPeople } from './test/test-people.ts';

const T = Date.UTC(2026, 0, 1);
const inRedis = openTestPeople();
afterAll(inRedis.close);

/** An identify: a visitor becomes a user. */
function toFact(environmentId: string, offset: number, [aKey, bKey]: [Buffer, Buffer]): GraphFact {
  const kinds = { aKind: 'anonymous', bKind: 'untyped' } as const;
  const step = { link: 'identify', ...kinds, aKey, bKey, blocked: false, otherKeys: [] } as const;
  return { environmentId, offset, receivedAt: T + 1, eventTime: T + 1, steps: [step] };
}

const newKey = () => randomBytes(16);

describe('a call of the identity graph in Redis', () => {
  it('takes as long with 20,000 identities held as with none, when it touches none of them', async () => {
    const { people, namespace } = await inRedis.open();
    await people.rebuild.mintEpoch();
    const held = Array.from({ length: 20_000 }, () => [newKey(), String(T)]).flat();
    await inRedis.redis.hset(`${namespace}h:{held}`, ...held);
    let partition = 0;
    const measure = async (environmentId: string): Promise<number> => {
      const facts = Array.from({ length: 128 }, (_, at) => toFact(environmentId, at, [newKey(), newKey()]));
      const start = performance.now();
      const applied = await people.graph.apply({
        generation: 0,
        partition: partition++,
        after: -1,
        through: 127,
        facts,
      });
      const took = performance.now() - start;
      expect(new Set(applied.map(({ kind }) => kind))).toEqual(new Set(['decided']));
      return took;
    };
    const [free, busy]: [number[], number[]] = [[], []];
    for (let turn = 0; turn < 5; turn++) {
      free.push(await measure('free'));
      busy.push(await measure('held'));
    }
    // The fastest of five, because other load slows some of them. A scan of all holds took seconds a call.
    expect(Math.min(...busy) / Math.min(...free)).toBeLessThan(5);
  });

  it('decides as the plain model does where it stops because it has looked for the holds of many identities', async () => {
    const { people } = await inRedis.open();
    const model = openMemoryPeople();
    const environmentId = 'large';
    const persons = Array.from({ length: 12 }, () => Array.from({ length: 900 }, newKey));
    for (const members of persons) {
      const rows = members.map(
        (key, at): Override => ({
          environmentId,
          key,
          root: members[0]!,
          kind: at === 0 ? 'untyped' : 'custom',
          linkedAt: T,
        }),
      );
      for (const one of [people, model]) await one.rebuild.loadOverrides(rows);
    }
    for (const one of [people, model]) {
      await one.rebuild.mintEpoch();
      const keys = [3, 7, 11].map((at) => persons[at]![at]!);
      const name = { environmentId, erasureId: newKey() };
      await one.guards.putHold({ ...name, keys, cutoffMs: T, lapsesAtMs: null });
    }
    const asked = [3, 0, 7, 1, 11, 3].map((person, at) => persons[person]![at]!).concat(persons.map(([root]) => root!));
    const told = await people.guards.heldFrom(environmentId, asked);
    expect(told).toEqual(await model.guards.heldFrom(environmentId, asked));
    expect(told.slice(0, 6)).toEqual([T, null, T, null, T, T]);
    const facts = persons.flatMap((members, person) =>
      [0, 1].map((time) => toFact(environmentId, 2 * person + time, [newKey(), members[450 * time]!])),
    );
    const block = { generation: 0, partition: 0, after: -1, through: facts.length, facts };
    const parts: number[] = [];
    const applied = await people.graph.apply(block, (part) => parts.push(part.length));
    expect(describeValue(applied)).toEqual(describeValue(await model.graph.apply(block)));
    expect(applied.filter(({ kind }) => kind === 'parked')).toHaveLength(6);
    expect(parts.length).toBeGreaterThan(1);
    expect(await people.rebuild.digest(environmentId)).toBe(await model.rebuild.digest(environmentId));
    expect(await people.graph.lastApplied(block)).toBe(facts.length);
  });

  it('tells alike from when on links of a person wait, though its hold goes between the two calls that were asked for it', async () => {
    const { people } = await inRedis.open();
    const environmentId = 'parted';
    const persons = Array.from({ length: 11 }, () => Array.from({ length: 900 }, newKey));
    for (const members of persons) {
      const own = { environmentId, root: members[0]!, kind: 'custom' as const, linkedAt: T };
      await people.rebuild.loadOverrides(members.map((key): Override => ({ ...own, key })));
    }
    await people.rebuild.mintEpoch();
    const hold = { environmentId, erasureId: newKey(), keys: [persons[0]![5]!], cutoffMs: T, lapsesAtMs: null };
    await people.guards.putHold(hold);
    const asked = [persons[0]![0]!, ...persons.slice(1).map(([root]) => root!), persons[0]![1]!];
    const asking = people.guards.heldFrom(environmentId, asked);
    // On the same connection: after the first call, which reaches its limit of look-ups, and before the second.
    const releasing = people.guards.releaseHold(hold);
    const told = await asking;
    await releasing;
    expect([told[0], told.at(-1)]).toEqual([T, T]);
    expect(await people.guards.heldFrom(environmentId, asked)).toEqual(asked.map(() => null));
  });
});
