import { randomBytes, randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import type { ErasureGuards, ErasureHold } from './guards.ts';
import { MissingEpochFault } from './people.ts';
import { openRedisPeople } from './redis/index.ts';
import { openMemoryPeople } from './test/memory/index.ts';
import { openTestPeople } from './test/test-people.ts';

interface Harness {
  readonly holds: ErasureGuards;
  /** What the identity graph's script would find for a key. */
  cutoffOf(environmentId: string, key: Buffer): Promise<number | null>;
}

const inRedis = openTestPeople();
const { redis } = inRedis;
afterAll(inRedis.close);

async function openRedis(): Promise<Harness> {
  const { people, namespace } = await inRedis.open();
  const cutoffOf = async (environmentId: string, key: Buffer) => {
    const text = await redis.hget(`${namespace}h:{${environmentId}}`, key);
    return text === null ? null : Number(text);
  };
  return { holds: people.guards, cutoffOf };
}

async function openMemory(): Promise<Harness> {
  const { guards, holdOf } = openMemoryPeople();
  return { holds: guards, cutoffOf: async (...question) => holdOf(...question) };
}

const T = Date.UTC(2026, 0, 1);
const LAPSES_AT = T + 60_000;
const newKey = () => randomBytes(16);
function createHold(fields: Partial<ErasureHold> = {}): ErasureHold {
  const own = { environmentId: `test-${randomUUID()}`, erasureId: randomBytes(16), keys: [newKey()] };
  return { ...own, cutoffMs: T, lapsesAtMs: LAPSES_AT, ...fields };
}

/** Random operations on a few erasures of a few people in one environment. */
const step = fc.record({
  erasure: fc.nat({ max: 3 }),
  act: fc.constantFrom('place', 'extend', 'confirm', 'release', 'lapse'),
  keys: fc.uniqueArray(fc.nat({ max: 2 }), { minLength: 1 }),
  cutoffMs: fc.integer({ min: T, max: T + 3 }),
  lapsesAtMs: fc.option(fc.integer({ min: LAPSES_AT, max: LAPSES_AT + 3 })),
});

describe.each([
  ['memory', openMemory],
  ['redis', openRedis],
])('erasure holds in %s', (_name, open) => {
  it('hold every key of the erasure with its cut-off, and nobody else', async () => {
    const { holds, cutoffOf } = await open();
    const hold = createHold({ keys: [newKey(), newKey()] });
    await holds.putHold(hold);
    for (const key of hold.keys) expect(await cutoffOf(hold.environmentId, key)).toBe(T);
    expect(await cutoffOf(hold.environmentId, newKey())).toBeNull();
    expect(await cutoffOf(`${hold.environmentId}-b`, hold.keys[0]!)).toBeNull();
  });

  it('keep an identity held while another erasure holds it, with the cut-off of the one that is left', async () => {
    const { holds, cutoffOf } = await open();
    const first = createHold({ cutoffMs: T });
    const second = { ...first, erasureId: randomBytes(16), cutoffMs: T + 5 };
    await holds.putHold(second);
    await holds.putHold(first);
    expect(await cutoffOf(first.environmentId, first.keys[0]!)).toBe(T + 5);
    await holds.releaseHold(second);
    expect(await cutoffOf(first.environmentId, first.keys[0]!)).toBe(T);
    await holds.releaseHold(first);
    expect(await cutoffOf(first.environmentId, first.keys[0]!)).toBeNull();
  });

  it('drop what lapsed, and nothing before its time', async () => {
    const { holds, cutoffOf } = await open();
    const hold = createHold();
    await holds.putHold(hold);
    expect(await holds.dropLapsedHolds(LAPSES_AT - 1)).toBe(0);
    expect(await cutoffOf(hold.environmentId, hold.keys[0]!)).toBe(T);
    expect(await holds.dropLapsedHolds(LAPSES_AT)).toBe(1);
    expect(await cutoffOf(hold.environmentId, hold.keys[0]!)).toBeNull();
    expect(await holds.dropLapsedHolds(LAPSES_AT)).toBe(0);
  });

  it('keep what was confirmed until it is released', async () => {
    const { holds, cutoffOf } = await open();
    const hold = createHold();
    await holds.putHold(hold);
    expect(await holds.confirmHold(hold)).toBe(true);
    expect(await holds.dropLapsedHolds(LAPSES_AT * 2)).toBe(0);
    expect(await cutoffOf(hold.environmentId, hold.keys[0]!)).toBe(T);
    await holds.releaseHold(hold);
    expect(await cutoffOf(hold.environmentId, hold.keys[0]!)).toBeNull();
  });

  it('are not made by a confirmation that comes after the erasure is done', async () => {
    const { holds, cutoffOf } = await open();
    const hold = createHold();
    await holds.putHold(hold);
    await holds.releaseHold(hold);
    expect(await holds.confirmHold(hold)).toBe(false);
    await holds.releaseHold(hold);
    expect(await cutoffOf(hold.environmentId, hold.keys[0]!)).toBeNull();
  });

  it('are listed with their cut-offs, and when they lapse', async () => {
    const { holds } = await open();
    const [lapsing, standing] = [createHold(), createHold({ cutoffMs: T + 1, lapsesAtMs: null })].map((hold) => {
      return { ...hold, environmentId: 'listed' };
    });
    for (const hold of [lapsing!, standing!]) await holds.putHold(hold);
    const listed = (await holds.listHolds('listed')).sort((one, other) => one.cutoffMs - other.cutoffMs);
    expect(listed).toEqual([
      { erasureId: lapsing!.erasureId, cutoffMs: T, lapsesAtMs: LAPSES_AT },
      { erasureId: standing!.erasureId, cutoffMs: T + 1, lapsesAtMs: null },
    ]);
    expect(await holds.listHolds('elsewhere')).toEqual([]);
    expect(await holds.dropLapsedHolds(LAPSES_AT * 2)).toBe(1);
    expect(await holds.listHolds('listed')).toHaveLength(1);
  });

  it('are those of the erasures that are left, whatever is placed, placed again, extended, confirmed, released or lapses in any order', async () => {
    const { holds, cutoffOf } = await open();
    const property = fc.asyncProperty(fc.array(step, { maxLength: 15 }), async (steps) => {
      const environmentId = `test-${randomUUID()}`;
      const people = [newKey(), newKey(), newKey()];
      const ids = Array.from({ length: 4 }, () => randomBytes(16));
      const left = new Map<number, ErasureHold>();
      for (const { act, erasure, keys, cutoffMs, lapsesAtMs } of steps) {
        const name = { environmentId, erasureId: ids[erasure]! };
        const known = left.get(erasure);
        if (act === 'place') {
          const hold = { ...name, keys: keys.map((at) => people[at]!), cutoffMs, lapsesAtMs };
          await holds.putHold(hold);
          left.set(erasure, hold);
        }
        if (act === 'extend') {
          const hold = { ...name, keys: keys.map((at) => people[at]!), cutoffMs, lapsesAtMs: null };
          expect(await holds.extendHold(hold)).toBe(known !== undefined);
          if (known !== undefined) left.set(erasure, hold);
        }
        if (act === 'confirm') {
          expect(await holds.confirmHold(name)).toBe(known !== undefined);
          if (known !== undefined) left.set(erasure, { ...known, lapsesAtMs: null });
        }
        if (act === 'release') {
          await holds.releaseHold(name);
          left.delete(erasure);
        }
        if (act === 'lapse') {
          await holds.dropLapsedHolds(LAPSES_AT + 1);
          for (const [id, hold] of left)
            if (hold.lapsesAtMs !== null && hold.lapsesAtMs <= LAPSES_AT + 1) left.delete(id);
        }
      }
      for (const key of people) {
        const own = [...left.values()].filter((hold) => hold.keys.includes(key)).map((hold) => hold.cutoffMs);
        expect(await cutoffOf(environmentId, key)).toBe(own.length === 0 ? null : Math.max(...own));
      }
    });
    await fc.assert(property, { numRuns: 80 });
  });
});

describe('erasure holds in redis', () => {
  it('tell of nobody that links wait while there is no epoch: an empty store would say that nobody is held', async () => {
    for (const { guards } of [(await inRedis.open()).people, openMemoryPeople()]) {
      const hold = createHold();
      await guards.putHold(hold);
      await expect(guards.heldFrom(hold.environmentId, hold.keys)).rejects.toThrow(MissingEpochFault);
    }
  });

  it('fails at once while Redis is away instead of queueing', async () => {
    const people = await openRedisPeople({ url: 'redis://127.0.0.1:1' });
    await expect(people.guards.putHold(createHold())).rejects.toThrow();
    await people.close();
  });
});
