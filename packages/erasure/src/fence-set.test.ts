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

/** A fence store that can fail and counts the fences that it returns. */
class Store {
  mode: 'responds' | 'fails' | 'hangs' | 'disconnects' = 'responds';
  returned = 0;
  readonly stored: StoredFence[];
  constructor(...stored: StoredFence[]) {
    this.stored = stored;
  }

  async *readFences({ knownParts, signal }: FenceReading = {}): AsyncGenerator<StoredFence> {
    if (this.mode === 'fails') throw new Error('ECONNREFUSED');
    if (this.mode === 'hangs') await rejectOnAbort(signal!);
    const unknown = this.stored.filter(({ part }) => knownParts?.has(part) !== true);
    for (const [at, fence] of unknown.entries()) {
      if (this.mode === 'disconnects' && at === 1) throw new Error('ECONNRESET');
      this.returned++;
      yield fence;
    }
  }
}

const rejectOnAbort = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));

async function withFenceSet(records: Store, work: (set: FenceSet) => Promise<void>) {
  const faults: unknown[] = [];
  const set = openFenceSet({ records, onFault: (fault) => faults.push(fault) });
  await vi.advanceTimersByTimeAsync(0);
  await work(set).finally(set.close);
  return faults;
}

const key = Buffer.alloc(16, 0xab);
const query = { environmentId: 'demo', key, eventTimeMs: 1_000, receivedAtMs: 2_000 };

describe('a FenceSet', () => {
  it('a fence covers data of one identity in one environment up to the cut-off', async () => {
    await withFenceSet(new Store(fenceOf(key)), async (set) => {
      expect(set.isFenced(query)).toBe(true);
      expect(set.isFenced({ ...query, eventTimeMs: 3_000, receivedAtMs: 1_000 })).toBe(true);
      expect(set.isFenced({ ...query, eventTimeMs: 1_001 })).toBe(false);
      expect(set.isFenced({ ...query, environmentId: 'other' })).toBe(false);
      expect(set.isFenced({ ...query, key: Buffer.alloc(16, 1) })).toBe(false);
    });
  });

  it('the set loads a new fence within four seconds and applies the latest cut-off', async () => {
    const store = new Store(fenceOf(key));
    await withFenceSet(store, async (set) => {
      // The store's clock is far behind.
      store.stored.push(
        fenceOf(key, { cutoffMs: 1_500, fencedAtMs: 5, part: 'second' }),
        fenceOf(key, { cutoffMs: 900 }),
      );
      await vi.advanceTimersByTimeAsync(4_000);
      expect(set.isFenced({ ...query, eventTimeMs: 1_500 })).toBe(true);
    });
  });

  it('the set reads only new fences, and rereads all fences every ten minutes', async () => {
    const store = new Store(...Array.from({ length: 100 }, (_, at) => fenceOf(Buffer.alloc(16, at + 1))));
    await withFenceSet(store, async () => {
      await vi.advanceTimersByTimeAsync(3_600_000);
      expect(store.returned).toBeLessThanOrEqual(7 * 100);
    });
  });

  it('the set loads all fences after an interrupted read', async () => {
    const last = Buffer.alloc(16, 9);
    const store = new Store(fenceOf(key), fenceOf(Buffer.alloc(16, 8)), fenceOf(last));
    store.mode = 'disconnects';
    const faults = await withFenceSet(store, async (set) => {
      expect(set.loaded).toBe(false);
      store.mode = 'responds';
      await vi.advanceTimersByTimeAsync(1_000);
      expect(set.loaded).toBe(true);
      expect(set.isFenced({ ...query, key: last })).toBe(true);
    });
    expect(faults).toHaveLength(1);
  });

  it('the set clears its timers after each query', async () => {
    const store = new Store(fenceOf(key));
    await withFenceSet(store, async () => {
      const before = vi.getTimerCount();
      await vi.advanceTimersByTimeAsync(60_000);
      expect(vi.getTimerCount()).toBe(before);
    });
    expect(vi.getTimerCount()).toBe(0);
  });

  it('the set is loaded only if its last refresh is at most five seconds old', async () => {
    const store = new Store();
    store.mode = 'fails';
    const faults = await withFenceSet(store, async (set) => {
      expect(set.loaded).toBe(false);
      store.mode = 'responds';
      await vi.advanceTimersByTimeAsync(1_000);
      expect(set.loaded).toBe(true);
      store.mode = 'fails';
      await vi.advanceTimersByTimeAsync(4_900);
      expect(set.loaded).toBe(true);
      await vi.advanceTimersByTimeAsync(1_200);
      expect(set.loaded).toBe(false);
      store.mode = 'responds';
      await vi.advanceTimersByTimeAsync(1_000);
      expect(set.loaded).toBe(true);
    });
    expect(faults.length).toBeGreaterThan(3);
  });

  it.each<[string, (set: FenceSet) => void]>([
    ['writers check keys', (set) => set.mayHold(key, 0)],
    ['readers check fences', (set) => set.isFenced(query)],
  ])(
    'the set refreshes on the first check and every second while %s, and every four seconds when idle',
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

  it('the set aborts a stalled query and retries', async () => {
    const store = new Store(fenceOf(key));
    store.mode = 'hangs';
    const faults = await withFenceSet(store, async (set) => {
      store.mode = 'responds';
      await vi.advanceTimersByTimeAsync(6_000);
      expect(set.loaded).toBe(true);
      expect(set.isFenced(query)).toBe(true);
    });
    expect(faults).toHaveLength(1);
  });

  it('the filter passes every fenced key and rejects most other keys', async () => {
    const keys = fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => Buffer.from(bytes));
    const fenced = fc.sample(keys, 500);
    await withFenceSet(new Store(...fenced.map((one) => fenceOf(one))), async (set) => {
      for (const one of fenced) expect(set.mayHold(Buffer.concat([Buffer.alloc(3), one]), 3)).toBe(true);
      const passed = fc.sample(keys, 5_000).filter((one) => set.mayHold(one, 0));
      expect(passed.length).toBeLessThan(500);
    });
  });
});
