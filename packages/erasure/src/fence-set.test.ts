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

/** A store of fences: what stands in it, what was read of it, and whether it answers. */
class Store {
  mode: 'answers' | 'fails' | 'is silent' | 'is cut' = 'answers';
  told = 0;
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
      this.told++;
      yield fence;
    }
  }
}

/** A question that was ended fails. */
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

  it('knows a fence within four seconds of its being written, and of several the latest cut-off', async () => {
    const store = new Store(fenceOf(key));
    await using(store, async (set) => {
      store.stored.push(fenceOf(key, { cutoffMs: 1_500, part: 'second' }), fenceOf(key, { cutoffMs: 900 }));
      await vi.advanceTimersByTimeAsync(4_000);
      expect(set.isFenced({ ...question, eventTimeMs: 1_500 })).toBe(true);
    });
  });

  it('knows one whatever the clock of the store said when it was written', async () => {
    const late = Buffer.alloc(16, 3);
    const store = new Store(fenceOf(key));
    await using(store, async (set) => {
      store.stored.push(fenceOf(late, { fencedAtMs: 5, part: 'second' }));
      await vi.advanceTimersByTimeAsync(4_000);
      expect(set.isFenced({ ...question, key: late })).toBe(true);
    });
  });

  it('reads a fence once, and all of them again only every ten minutes', async () => {
    const store = new Store(...Array.from({ length: 100 }, (_, at) => fenceOf(Buffer.alloc(16, at + 1))));
    await using(store, async () => {
      await vi.advanceTimersByTimeAsync(3_600_000);
      expect(store.told).toBeLessThanOrEqual(7 * 100);
    });
  });

  it('knows all of them after a reading that was cut short', async () => {
    const last = Buffer.alloc(16, 9);
    const store = new Store(fenceOf(key), fenceOf(Buffer.alloc(16, 8)), fenceOf(last));
    store.mode = 'is cut';
    const faults = await using(store, async (set) => {
      expect(set.loaded).toBe(false);
      store.mode = 'answers';
      await vi.advanceTimersByTimeAsync(1_000);
      expect(set.loaded).toBe(true);
      expect(set.isFenced({ ...question, key: last })).toBe(true);
    });
    expect(faults).toHaveLength(1);
  });

  it('leaves nothing behind of a question that has ended', async () => {
    const store = new Store(fenceOf(key));
    await using(store, async () => {
      const before = vi.getTimerCount();
      await vi.advanceTimersByTimeAsync(60_000);
      expect(vi.getTimerCount()).toBe(before);
    });
    expect(vi.getTimerCount()).toBe(0);
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

  it.each<[string, (set: FenceSet) => void]>([
    ['writers ask', (set) => set.mayHold(key, 0)],
    ['readers ask', (set) => set.isFenced(question)],
  ])(
    'is read each second while %s, at once for the first of them, and every four seconds otherwise',
    async (_, ask) => {
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
      ask(set);
      await vi.advanceTimersByTimeAsync(0);
      expect(readings).toBe(1);
      for (let at = 0; at < 200; at++) {
        ask(set);
        await vi.advanceTimersByTimeAsync(100);
      }
      expect(readings).toBeGreaterThanOrEqual(19);
      await set.close();
    },
  );

  it('ends a question under which nothing comes, and asks again', async () => {
    const store = new Store(fenceOf(key));
    store.mode = 'is silent';
    const faults = await using(store, async (set) => {
      store.mode = 'answers';
      await vi.advanceTimersByTimeAsync(6_000);
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
