import { randomBytes, randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import type { ErasureGuards, ErasureHold } from './guards.ts';
import { MissingEpochFault } from './people.ts';
import { openMemoryPeople } from './test/memory/index.ts';
import { openTestPeople } from './test/test-people.ts';

interface Harness {
  readonly holds: ErasureGuards;
  /** The cut-off that the identity graph's script reads. */
  cutoffOf(environmentId: string, key: Buffer): Promise<number | null>;
}

const testPeople = openTestPeople();
const { redis } = testPeople;
afterAll(testPeople.close);

async function openRedis(): Promise<Harness> {
  const { people, namespace } = await testPeople.open();
  const cutoffOf = async (environmentId: string, key: Buffer) => {
    const value = await redis.hget(`${namespace}h:{${environmentId}}`, key);
    return value === null ? null : Number(value);
  };
  return { holds: people.guards, cutoffOf };
}

async function openMemory(): Promise<Harness> {
  const { guards, holdOf } = openMemoryPeople();
  return { holds: guards, cutoffOf: async (...args) => holdOf(...args) };
}

const T = Date.UTC(2026, 0, 1);
const LAPSES_AT = T + 60_000;
const newKey = () => randomBytes(16);
function createHold(fields: Partial<ErasureHold> = {}): ErasureHold {
  const defaults = { environmentId: `test-${randomUUID()}`, erasureId: randomBytes(16), keys: [newKey()] };
  return { ...defaults, cutoffMs: T, lapsesAtMs: LAPSES_AT, ...fields };
}

const step = fc.record({
  erasure: fc.nat({ max: 3 }),
  operation: fc.constantFrom('put', 'extend', 'confirm', 'release', 'lapse'),
  keys: fc.uniqueArray(fc.nat({ max: 2 }), { minLength: 1 }),
  cutoffMs: fc.integer({ min: T, max: T + 3 }),
  lapsesAtMs: fc.option(fc.integer({ min: LAPSES_AT, max: LAPSES_AT + 3 })),
});

describe.each([
  ['memory', openMemory],
  ['redis', openRedis],
])('erasure holds in %s', (_name, open) => {
  it('listHolds returns cut-offs and expiry times; dropLapsedHolds returns the number of expired holds', async () => {
    const { holds } = await open();
    const [lapsing, confirmed] = [createHold(), createHold({ cutoffMs: T + 1, lapsesAtMs: null })].map((hold) => {
      return { ...hold, environmentId: 'listed' };
    });
    for (const hold of [lapsing!, confirmed!]) await holds.putHold(hold);
    const listed = (await holds.listHolds('listed')).sort((a, b) => a.cutoffMs - b.cutoffMs);
    expect(listed).toEqual([
      { erasureId: lapsing!.erasureId, cutoffMs: T, lapsesAtMs: LAPSES_AT },
      { erasureId: confirmed!.erasureId, cutoffMs: T + 1, lapsesAtMs: null },
    ]);
    expect(await holds.listHolds('elsewhere')).toEqual([]);
    expect(await holds.dropLapsedHolds(LAPSES_AT * 2)).toBe(1);
    expect(await holds.listHolds('listed')).toHaveLength(1);
  });

  it("an identity's cut-off is the latest cut-off among its holds, after any sequence of operations", async () => {
    const { holds, cutoffOf } = await open();
    const property = fc.asyncProperty(fc.array(step, { maxLength: 15 }), async (steps) => {
      const environmentId = `test-${randomUUID()}`;
      const people = [newKey(), newKey(), newKey()];
      const ids = Array.from({ length: 4 }, () => randomBytes(16));
      const remaining = new Map<number, ErasureHold>();
      for (const { operation, erasure, keys, cutoffMs, lapsesAtMs } of steps) {
        const name = { environmentId, erasureId: ids[erasure]! };
        const known = remaining.get(erasure);
        if (operation === 'put') {
          const hold = { ...name, keys: keys.map((at) => people[at]!), cutoffMs, lapsesAtMs };
          await holds.putHold(hold);
          remaining.set(erasure, hold);
        }
        if (operation === 'extend') {
          const hold = { ...name, keys: keys.map((at) => people[at]!), cutoffMs, lapsesAtMs: null };
          expect(await holds.extendHold(hold)).toBe(known !== undefined);
          if (known !== undefined) remaining.set(erasure, hold);
        }
        if (operation === 'confirm') {
          expect(await holds.confirmHold(name)).toBe(known !== undefined);
          if (known !== undefined) remaining.set(erasure, { ...known, lapsesAtMs: null });
        }
        if (operation === 'release') {
          await holds.releaseHold(name);
          remaining.delete(erasure);
        }
        if (operation === 'lapse') {
          await holds.dropLapsedHolds(LAPSES_AT + 1);
          for (const [id, hold] of remaining)
            if (hold.lapsesAtMs !== null && hold.lapsesAtMs <= LAPSES_AT + 1) remaining.delete(id);
        }
      }
      for (const key of people) {
        const cutoffs = [...remaining.values()].filter((hold) => hold.keys.includes(key)).map((hold) => hold.cutoffMs);
        expect(await cutoffOf(environmentId, key)).toBe(cutoffs.length === 0 ? null : Math.max(...cutoffs));
      }
    });
    await fc.assert(property, { numRuns: 50 });
  });
});

describe('ErasureGuards', () => {
  it('heldFrom throws without an epoch', async () => {
    for (const { guards } of [(await testPeople.open()).people, openMemoryPeople()]) {
      const hold = createHold();
      await guards.putHold(hold);
      await expect(guards.heldFrom(hold.environmentId, hold.keys)).rejects.toThrow(MissingEpochFault);
    }
  });

  it('heldFrom ignores an erased identity whose key is still the person key', async () => {
    for (const people of [(await testPeople.open()).people, openMemoryPeople()]) {
      const [root, member] = [newKey(), newKey()];
      const hold = createHold({ keys: [root], lapsesAtMs: null });
      const { environmentId } = hold;
      await people.guards.fence([{ environmentId, key: root, cutoffMs: T }]);
      await people.rebuild.loadOverrides([{ environmentId, key: member, root, kind: 'custom', linkedAt: T + 1 }]);
      await people.rebuild.mintEpoch();
      await people.guards.putHold(hold);
      expect(await people.guards.heldFrom(environmentId, [root, member])).toEqual([T, null]);
    }
  });
});
