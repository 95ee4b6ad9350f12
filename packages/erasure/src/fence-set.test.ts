import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type FenceSet, openFenceSet } from './fence-set.ts';
import type { StoredFence } from './records.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const ERASURE = Buffer.alloc(16, 1);
const fenceOf = (key: Buffer, parts: Partial<StoredFence> = {}): StoredFence => ({
  ...{ environmentId: 'demo', key, cutoffMs: 1_000, erasureId: ERASURE, fencedAtMs: 5_000_000 },
  ...parts,
});

/** A store of fences: what stands in it, since when it was asked, and whether it answers. */
class Store {
  mode: 'answers' | 'fails' | 'is silent' = 'answers';
  readonly asked: (number | undefined)[] = [];
  readonly stored: StoredFence[];
  constructor(...stored: StoredFence[]) {
    this.stored = stored;
  }

  async *readFences(sinceMs?: number): AsyncGenerator<StoredFence> {
    this.asked.push(sinceMs);
    if (this.mode === 'fails') throw new Error('ECONNREFUSED');
    if (this.mode === 'is silent') await new Promise(() => {});
    yield* this.stored.filter(({ fencedAtMs }) => fencedAtMs >= (sinceMs ?? 0));
  }
}

async function using(records: Store, work: (set: FenceSet) => Promise<void>) {
  const faults: unknown[] = [];
  const set = openFenceSet({ records, onFault: (fault) => faults.push(fault) });
  await vi.advanceTimersByTimeAsync(0);
  await work(set).finally(set.close);
  return faults;
}

const key = Buffer.alloc(16, 0xab);
const question = { environmentId: 'demo', key, eventTimeMs: 1_000, receivedAtMs: 2_000 };

describe('the set of fences', () => {
  it('fences what happened or was received up to the cut-off, of this identity and environment, and nothing later', async () => {
    await using(new Store(fenceOf(key)), async (set) => {
      expect(set.isFenced(question)).toBe(true);
      expect(set.isFenced({ ...question, eventTimeMs: 3_000, receivedAtMs: 1_000 })).toBe(true);
      expect(set.isFenced({ ...question, eventTimeMs: 1_001 })).toBe(false);
      expect(set.isFenced({ ...question, environmentId: 'other' })).toBe(false);
      expect(set.isFenced({ ...question, key: Buffer.alloc(16, 1) })).toBe(false);
    });
  });

  it('knows a fence within two seconds of its being written, and of several the latest cut-off', async () => {
    const store = new Store(fenceOf(key));
    await using(store, async (set) => {
      store.stored.push(fenceOf(key, { cutoffMs: 1_500, fencedAtMs: 5_000_100 }), fenceOf(key, { cutoffMs: 900 }));
      await vi.advanceTimersByTimeAsync(2_000);
      expect(set.isFenced({ ...question, eventTimeMs: 1_500 })).toBe(true);
    });
  });

  it('knows one that became visible behind a later one', async () => {
    const late = Buffer.alloc(16, 3);
    const store = new Store(fenceOf(key));
    await using(store, async (set) => {
      store.stored.push(fenceOf(late, { fencedAtMs: 5_000_000 - 59_000 }));
      await vi.advanceTimersByTimeAsync(2_000);
      expect(set.isFenced({ ...question, key: late })).toBe(true);
      expect(store.asked.slice(0, 2)).toEqual([undefined, 5_000_000 - 60_000]);
    });
  });

  it('is loaded only while what it knows is at most five seconds old, and again as soon as the store answers', async () => {
    const store = new Store();
    store.mode = 'fails';
    const faults = await using(store, async (set) => {
      expect(set.loaded).toBe(false);
      store.mode = 'answers';
      await vi.advanceTimersByTimeAsync(1_000);
      expect(set.loaded).toBe(true);
      store.mode = 'fails';
      await vi.advanceTimersByTimeAsync(4_900);
      expect(set.loaded).toBe(true);
      await vi.advanceTimersByTimeAsync(1_200);
      expect(set.loaded).toBe(false);
      store.mode = 'answers';
      await vi.advanceTimersByTimeAsync(1_000);
      expect(set.loaded).toBe(true);
    });
    expect(faults.length).toBeGreaterThan(3);
  });

  it('asks again when the store has been silent for ten seconds', async () => {
    const store = new Store(fenceOf(key));
    store.mode = 'is silent';
    const faults = await using(store, async (set) => {
      store.mode = 'answers';
      await vi.advanceTimersByTimeAsync(12_000);
      expect(set.loaded).toBe(true);
      expect(set.isFenced(question)).toBe(true);
    });
    expect(faults).toHaveLength(1);
  });

  it('says of no fenced key that nobody may be fenced under it, and of hardly any other that somebody may', async () => {
    const keys = fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => Buffer.from(bytes));
    const fenced = fc.sample(keys, 500);
    await using(new Store(...fenced.map((one) => fenceOf(one))), async (set) => {
      for (const one of fenced) expect(set.mayHold(Buffer.concat([Buffer.alloc(3), one]), 3)).toBe(true);
      const taken = fc.sample(keys, 5_000).filter((one) => set.mayHold(one, 0));
      expect(taken.length).toBeLessThan(500);
    });
  });
});
