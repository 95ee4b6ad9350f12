import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type FenceSet, openFenceSet } from './fences.ts';
import type { FenceReading, StoredFence } from './records.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const ERASURE = Buffer.alloc(16, 1);
const fenceOf = (key: Buffer, parts: Partial<StoredFence> = {}): StoredFence => ({
  environmentId: 'demo',
  key,
  cutoffMs: 1_000,
  erasureId: ERASURE,
  fencedAtMs: 5_000_000,
  part: 'first',
  ...parts,
});

/** A store of fences that can fail, and counts the fences that it returned. */
class Store {
  mode: 'answers' | 'fails' | 'is silent' | 'is cut' = 'answers';
  returned = 0;
  readonly stored: StoredFence[];
  constructor(...stored: StoredFence[]) {
    this.stored = stored;
  }

  async *readFences({ knownParts, signal }: FenceReading = {}): AsyncGenerator<StoredFence> {
    if (this.mode === 'fails') throw new Error('ECONNREFUSED');
    if (this.mode === 'is silent') await once(signal!);
    const unknown = this.stored.filter(({ part }) => knownParts?.has(part) !== true);
    for (const [at, fence] of unknown.entries()) {
      if (this.mode === 'is cut' && at === 1) throw new Error('ECONNRESET');
      this.returned++;
      yield fence;
    }
  }
}

/** Rejects when the query is aborted. */
const once = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));

async function using(records: Store, work: (set: FenceSet) => Promise<void>) {
  const faults: unknown[] = [];
  const set = openFenceSet({ records, onFault: (fault) => faults.push(fault) });
  await vi.advanceTimersByTimeAsync(0);
  await work(set).finally(set.close);
  return faults;
}

const key = Buffer.alloc(16, 0xab);
const query = { environmentId: 'demo', key, eventTimeMs: 1_000, receivedAtMs: 2_000 };

describe('a FenceSet', () => {
  it('a fence refuses what happened or was received up to its cut-off, of its identity and environment only', async () => {
    await using(new Store(fenceOf(key)), async (set) => {
      expect(set.isFenced(query)).toBe(true);
      expect(set.isFenced({ ...query, eventTimeMs: 3_000, receivedAtMs: 1_000 })).toBe(true);
      expect(set.isFenced({ ...query, eventTimeMs: 1_001 })).toBe(false);
      expect(set.isFenced({ ...query, environmentId: 'other' })).toBe(false);
      expect(set.isFenced({ ...query, key: Buffer.alloc(16, 1) })).toBe(false);
    });
  });

  it('the set knows a new fence within four seconds, and applies the latest cut-off of an identity', async () => {
    const store = new Store(fenceOf(key));
    await using(store, async (set) => {
      // By the store's clock it was written long ago.
      store.stored.push(
        fenceOf(key, { cutoffMs: 1_500, fencedAtMs: 5, part: 'second' }),
        fenceOf(key, { cutoffMs: 900 }),
      );
      await vi.advanceTimersByTimeAsync(4_000);
      expect(set.isFenced({ ...query, eventTimeMs: 1_500 })).toBe(true);
    });
  });

  it('the set reads a fence once, and all fences again every ten minutes', async () => {
    const store = new Store(...Array.from({ length: 100 }, (_, at) => fenceOf(Buffer.alloc(16, at + 1))));
    await using(store, async () => {
      await vi.advanceTimersByTimeAsync(3_600_000);
      expect(store.returned).toBeLessThanOrEqual(7 * 100);
    });
  });

  it('the set knows all fences after an interrupted reading', async () => {
    const last = Buffer.alloc(16, 9);
    const store = new Store(fenceOf(key), fenceOf(Buffer.alloc(16, 8)), fenceOf(last));
    store.mode = 'is cut';
    const faults = await using(store, async (set) => {
      expect(set.loaded).toBe(false);
      store.mode = 'answers';
      await vi.advanceTimersByTimeAsync(1_000);
      expect(set.loaded).toBe(true);
      expect(set.isFenced({ ...query, key: last })).toBe(true);
    });
    expect(faults).toHaveLength(1);
  });

  it('the set leaves no timer after a query has ended', async () => {
    const store = new Store(fenceOf(key));
    await using(store, async () => {
      const before = vi.getTimerCount();
      await vi.advanceTimersByTimeAsync(60_000);
      expect(vi.getTimerCount()).toBe(before);
    });
    expect(vi.getTimerCount()).toBe(0);
  });

  it('the set is loaded only while its last reading is at most five seconds old', async () => {
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

  it.each<[string, (set: FenceSet) => void]>([
    ['writers check keys', (set) => set.mayHold(key, 0)],
    ['readers check fences', (set) => set.isFenced(query)],
  ])(
    'the store is read each second while %s, immediately for the first check, and otherwise every four seconds',
    async (_, check) => {
      const store = new Store();
      let readings = 0;
      const readFences = (reading?: FenceReading) => {
        readings++;
        return store.readFences(reading);
      };
      const set = openFenceSet({ records: { readFences }, onFault: () => {} });
      await vi.advanceTimersByTimeAsync(20_000);
      expect(readings).toBeGreaterThanOrEqual(5);
      expect(readings).toBeLessThanOrEqual(6);
      readings = 0;
      check(set);
      await vi.advanceTimersByTimeAsync(0);
      expect(readings).toBe(1);
      for (let at = 0; at < 200; at++) {
        check(set);
        await vi.advanceTimersByTimeAsync(100);
      }
      expect(readings).toBeGreaterThanOrEqual(19);
      await set.close();
    },
  );

  it('the set aborts a query that returns nothing, and queries again', async () => {
    const store = new Store(fenceOf(key));
    store.mode = 'is silent';
    const faults = await using(store, async (set) => {
      store.mode = 'answers';
      await vi.advanceTimersByTimeAsync(6_000);
      expect(set.loaded).toBe(true);
      expect(set.isFenced(query)).toBe(true);
    });
    expect(faults).toHaveLength(1);
  });

  it('the filter passes every fenced key and few others', async () => {
    const keys = fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => Buffer.from(bytes));
    const fenced = fc.sample(keys, 500);
    await using(new Store(...fenced.map((one) => fenceOf(one))), async (set) => {
      for (const one of fenced) expect(set.mayHold(Buffer.concat([Buffer.alloc(3), one]), 3)).toBe(true);
      const taken = fc.sample(keys, 5_000).filter((one) => set.mayHold(one, 0));
      expect(taken.length).toBeLessThan(500);
    });
  });
});
