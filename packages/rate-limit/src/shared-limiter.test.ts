import fc from 'fast-check';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { openSharedLimiter, unsettledMax } from './index.ts';
import type { SharedBalances } from './shared-limiter.ts';
import { COST_MAX, LimiterCluster, type Request } from './test/limiter-cluster.ts';
import { createMemoryBalances } from './test/memory/index.ts';

beforeEach(() => vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => vi.useRealTimers());

const policy = { name: 'messages', perSecond: 1000, burst: 2000 };

/** Opens limiters whose shared buckets can become unavailable. */
function setUp() {
  const memory = createMemoryBalances();
  const state = { mode: 'available' as 'available' | 'down' | 'hung', calls: 0, changes: [] as boolean[] };
  const balances: SharedBalances = {
    charge: (charges) => {
      state.calls++;
      if (state.mode === 'down') return Promise.reject(new Error('connect ECONNREFUSED'));
      return state.mode === 'hung' ? new Promise(() => {}) : memory.charge(charges);
    },
  };
  const open = () => openSharedLimiter({ balances, onShared: (shared) => state.changes.push(shared) });
  return { state, balances, open };
}

const requests = fc.record({ process: fc.nat(3), cost: fc.integer({ min: 1, max: COST_MAX }), readMs: fc.nat(40) });
const steps = fc.array(
  fc.oneof(
    // Sequential requests whose bodies arrive with the headers, or concurrent requests whose bodies arrive later.
    fc.record({ request: requests, times: fc.integer({ min: 1, max: 40 }), isSequential: fc.boolean() }),
    fc.record({ passMs: fc.nat(150) }),
  ),
  { minLength: 5, maxLength: 60 },
);

it('several processes together never exceed the documented bound in any window, at any latency', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        policy: fc.record({
          name: fc.constant('messages'),
          perSecond: fc.integer({ min: 1, max: 400 }),
          burst: fc.integer({ min: 1, max: 1500 }),
        }),
        processes: fc.integer({ min: 1, max: 4 }),
        latencies: fc.array(fc.nat(100), { minLength: 1, maxLength: 8 }),
      }),
      steps,
      async ({ policy, processes, latencies }, run) => {
        const cluster = new LimiterCluster(policy, processes, latencies);
        for (const step of run) {
          if ('passMs' in step) await vi.advanceTimersByTimeAsync(step.passMs);
          else {
            const request: Request = step.isSequential ? { ...step.request, readMs: 0 } : step.request;
            for (let time = 0; time < step.times; time++) {
              void cluster.request(request);
              // Requests run either sequentially or concurrently.
              if (step.isSequential) await vi.advanceTimersByTimeAsync(0);
            }
          }
        }
        await vi.advanceTimersByTimeAsync(1000);
        expect(cluster.worstExcess()).toBeLessThanOrEqual(cluster.bound + 1e-6);
        await cluster.close();
      },
    ),
    { numRuns: 100 },
  );
});

it('several processes together never refuse a caller that stays below its rate', async () => {
  const cluster = new LimiterCluster(policy, 3, [1, 2]);
  for (let round = 0; round < 2000; round++) {
    void cluster.request({ process: round, cost: 10, readMs: 0 });
    await vi.advanceTimersByTimeAsync(10);
  }
  expect(cluster.refused).toBe(0);
  await cluster.close();
});

it('several processes together admit the full rate for a caller that exceeds its limit', async () => {
  const cluster = new LimiterCluster(policy, 3, [1, 2]);
  for (let round = 0; round < 500; round++) {
    for (let process = 0; process < 3; process++) void cluster.request({ process, cost: 10, readMs: 0 });
    await vi.advanceTimersByTimeAsync(10);
  }
  const sum = cluster.charges.reduce((units, { cost }) => units + cost, 0);
  // The burst plus 5 s at the full rate, minus a few requests that may not have been admitted by the end.
  expect(sum).toBeGreaterThan(policy.burst + 5 * policy.perSecond - 3 * COST_MAX);
  expect(cluster.refused).toBeGreaterThan(0);
  await cluster.close();
});

it('a process decides synchronously, and settles many requests in one call', async () => {
  const { state, open } = setUp();
  const bucket = open().bucket('key', policy);
  for (let request = 0; request < 4; request++) {
    expect(bucket.admit()).toMatchObject({ allowed: true });
    bucket.charge(10);
  }
  expect(state.calls).toBe(0);
  await vi.advanceTimersByTimeAsync(50);
  expect(state.calls).toBe(1);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(state.calls).toBe(1);
});

it('a process waits for a settlement once it has charged its unsettled maximum', async () => {
  const { open } = setUp();
  const bucket = open().bucket('key', policy);
  bucket.charge(unsettledMax(policy));
  const admitted = bucket.admit();
  expect(admitted).toBeInstanceOf(Promise);
  expect(await admitted).toMatchObject({ allowed: true, remaining: 1900 });
});

it('a process does not lose charges that it makes during a settlement', async () => {
  const memory = createMemoryBalances();
  const responses: (() => void)[] = [];
  const charge: SharedBalances['charge'] = async (charges) => {
    const backlogs = await memory.charge(charges);
    await new Promise<void>((resolve) => responses.push(resolve));
    return backlogs;
  };
  const bucket = openSharedLimiter({ balances: { charge } }).bucket('key', policy);
  bucket.charge(60);
  await vi.advanceTimersByTimeAsync(0);
  bucket.charge(30);
  responses[0]?.();
  await vi.advanceTimersByTimeAsync(0);
  expect(bucket.status().remaining).toBe(policy.burst - 90);
});

it("a process receives other processes' charges within its settlement interval", async () => {
  const { open } = setUp();
  const [first, second] = [open(), open()];
  first.bucket('key', policy).charge(5000);
  second.bucket('key', policy).charge(1);
  await vi.advanceTimersByTimeAsync(60);
  expect(second.bucket('key', policy).status().allowed).toBe(false);
});

it('a process does not lose charges when its cache evicts a bucket', async () => {
  const { balances } = setUp();
  const limiter = openSharedLimiter({ balances, entriesMax: 1 });
  limiter.bucket('first', policy).charge(1500);
  limiter.bucket('second', policy).charge(1);
  await limiter.close();
  expect(await balances.charge([{ id: 'first', costMs: 0 }])).toEqual([1500]);
});

it('a limiter settles its last charges when it is closed', async () => {
  const { open, balances } = setUp();
  const limiter = open();
  limiter.bucket('key', policy).charge(30);
  await limiter.close();
  expect(await balances.charge([{ id: 'key', costMs: 0 }])).toEqual([30]);
});

it.each(['down', 'hung'] as const)(
  'a process applies the limit locally without delaying callers while the shared buckets are unavailable (%s)',
  async (mode) => {
    const { state, open } = setUp();
    const limiter = open();
    const bucket = limiter.bucket('key', policy);
    state.mode = mode;
    bucket.charge(1);
    await vi.advanceTimersByTimeAsync(300);
    expect(limiter.shared).toBe(false);
    bucket.charge(1000);
    expect(await bucket.admit()).toMatchObject({ allowed: true, remaining: 1000 });
    bucket.charge(1000);
    expect(await bucket.admit()).toMatchObject({ allowed: false, remaining: 0, waitS: 1 });
    await vi.advanceTimersByTimeAsync(500);
    expect(await bucket.admit()).toMatchObject({ allowed: true, remaining: 500 });
    expect(state.changes).toEqual([false]);
  },
);

it.each(['down', 'hung'] as const)(
  'a process resumes sharing its limit with the first successful settlement after an outage (%s)',
  async (mode) => {
    const { state, open, balances } = setUp();
    const limiter = open();
    state.mode = mode;
    const bucket = limiter.bucket('key', policy);
    bucket.charge(1);
    await vi.advanceTimersByTimeAsync(300);
    state.mode = 'available';
    await balances.charge([{ id: 'key', costMs: 5000 }]);
    bucket.charge(1);
    await vi.advanceTimersByTimeAsync(350);
    expect(state.changes).toEqual([false, true]);
    expect(bucket.status().allowed).toBe(false);
  },
);

it('a process drops charges that it could not settle during an outage', async () => {
  const { state, open, balances } = setUp();
  const limiter = open();
  state.mode = 'down';
  const bucket = limiter.bucket('key', policy);
  for (let round = 0; round < 100; round++) {
    bucket.charge(1000);
    await vi.advanceTimersByTimeAsync(60);
  }
  state.mode = 'available';
  bucket.charge(1);
  await vi.advanceTimersByTimeAsync(60);
  expect((await balances.charge([{ id: 'key', costMs: 0 }]))[0]).toBeLessThan(10);
});
