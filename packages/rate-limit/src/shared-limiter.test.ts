import fc from 'fast-check';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { openSharedLimiter, unsettledMax } from './index.ts';
import type { SharedBalances } from './shared-limiter.ts';
import { COST_MAX, LimiterCluster, type Request } from './test/limiter-cluster.ts';
import { createMemoryBalances } from './test/memory/index.ts';

beforeEach(() => vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => vi.useRealTimers());

const policy = { name: 'messages', perSecond: 1000, burst: 2000 };

/** Shared buckets that the test can take away. */
function setUp() {
  const memory = createMemoryBalances();
  const world = { mode: 'there' as 'there' | 'away' | 'hangs', calls: 0, changes: [] as boolean[] };
  const balances: SharedBalances = {
    charge: (charges) => {
      world.calls++;
      if (world.mode === 'away') return Promise.reject(new Error('connect ECONNREFUSED'));
      return world.mode === 'hangs' ? new Promise(() => {}) : memory.charge(charges);
    },
  };
  const open = () => openSharedLimiter({ balances, onShared: (shared) => world.changes.push(shared) });
  return { world, balances, open };
}

const requests = fc.record({ process: fc.nat(3), cost: fc.integer({ min: 1, max: COST_MAX }), readMs: fc.nat(40) });
const steps = fc.array(
  fc.oneof(
    // Many requests together, as in a burst; the bodies of most arrive with them.
    fc.record({ request: requests, times: fc.integer({ min: 1, max: 40 }), isTogether: fc.boolean() }),
    fc.record({ passMs: fc.nat(150) }),
  ),
  { minLength: 5, maxLength: 60 },
);

it('several processes together never exceed burst, rate and the stated bound in any window, whatever the order and the latency', async () => {
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
        const world = new LimiterCluster(policy, processes, latencies);
        for (const step of run) {
          if ('passMs' in step) await vi.advanceTimersByTimeAsync(step.passMs);
          else {
            const request: Request = step.isTogether ? { ...step.request, readMs: 0 } : step.request;
            for (let time = 0; time < step.times; time++) {
              void world.request(request);
              // Either each request is finished before the next one starts, or all of them wait together.
              if (step.isTogether) await vi.advanceTimersByTimeAsync(0);
            }
          }
        }
        await vi.advanceTimersByTimeAsync(1000);
        expect(world.worstExcess()).toBeLessThanOrEqual(world.bound + 1e-6);
        await world.close();
      },
    ),
    { numRuns: 100 },
  );
});

it('several processes together leave capacity to a caller that stays below its rate, on whichever process', async () => {
  const world = new LimiterCluster(policy, 3, [1, 2]);
  for (let round = 0; round < 2000; round++) {
    void world.request({ process: round, cost: 10, readMs: 0 });
    await vi.advanceTimersByTimeAsync(10);
  }
  expect(world.refused).toBe(0);
  await world.close();
});

it('several processes together admit the whole rate of a caller that wants more', async () => {
  const world = new LimiterCluster(policy, 3, [1, 2]);
  for (let round = 0; round < 500; round++) {
    for (let process = 0; process < 3; process++) void world.request({ process, cost: 10, readMs: 0 });
    await vi.advanceTimersByTimeAsync(10);
  }
  const sum = world.charges.reduce((units, { cost }) => units + cost, 0);
  // In 5 s: the burst, and the rate, less the cost of a few requests that may be missing at the end.
  expect(sum).toBeGreaterThan(policy.burst + 5 * policy.perSecond - 3 * COST_MAX);
  expect(world.refused).toBeGreaterThan(0);
  await world.close();
});

it('one process decides without a promise, and settles many requests in one call', async () => {
  const { world, open } = setUp();
  const bucket = open().bucket('key', policy);
  for (let request = 0; request < 4; request++) {
    expect(bucket.admit()).toMatchObject({ allowed: true });
    bucket.charge(10);
  }
  expect(world.calls).toBe(0);
  await vi.advanceTimersByTimeAsync(50);
  expect(world.calls).toBe(1);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(world.calls).toBe(1);
});

it('one process waits for the others once it has let in as much as it may', async () => {
  const { open } = setUp();
  const bucket = open().bucket('key', policy);
  bucket.charge(unsettledMax(policy));
  const admitted = bucket.admit();
  expect(admitted).toBeInstanceOf(Promise);
  expect(await admitted).toMatchObject({ allowed: true, remaining: 1900 });
});

it('one process keeps what it lets in while an answer is on its way', async () => {
  const memory = createMemoryBalances();
  const answers: (() => void)[] = [];
  const charge: SharedBalances['charge'] = async (charges) => {
    const backlogs = await memory.charge(charges);
    await new Promise<void>((resolve) => answers.push(resolve));
    return backlogs;
  };
  const bucket = openSharedLimiter({ balances: { charge } }).bucket('key', policy);
  bucket.charge(60);
  await vi.advanceTimersByTimeAsync(0);
  bucket.charge(30);
  answers[0]?.();
  await vi.advanceTimersByTimeAsync(0);
  expect(bucket.status().remaining).toBe(policy.burst - 90);
});

it('one process learns within its interval what the others have used up', async () => {
  const { open } = setUp();
  const [one, other] = [open(), open()];
  one.bucket('key', policy).charge(5000);
  other.bucket('key', policy).charge(1);
  await vi.advanceTimersByTimeAsync(60);
  expect(other.bucket('key', policy).status().allowed).toBe(false);
});

it('one process loses no charge when the cache drops a bucket', async () => {
  const { balances } = setUp();
  const limiter = openSharedLimiter({ balances, entriesMax: 1 });
  limiter.bucket('first', policy).charge(1500);
  limiter.bucket('second', policy).charge(1);
  await limiter.close();
  expect(await balances.charge([{ id: 'first', costMs: 0 }])).toEqual([1500]);
});

it('one process reports to the others what it allowed last when it is closed', async () => {
  const { open, balances } = setUp();
  const limiter = open();
  limiter.bucket('key', policy).charge(30);
  await limiter.close();
  expect(await balances.charge([{ id: 'key', costMs: 0 }])).toEqual([30]);
});

it.each(['away', 'hangs'] as const)(
  'while the shared buckets are away, (%s) continues under the same limit by itself, and makes no caller wait',
  async (mode) => {
    const { world, open } = setUp();
    const limiter = open();
    const bucket = limiter.bucket('key', policy);
    world.mode = mode;
    bucket.charge(1);
    await vi.advanceTimersByTimeAsync(300);
    expect(limiter.shared).toBe(false);
    bucket.charge(1000);
    expect(await bucket.admit()).toMatchObject({ allowed: true, remaining: 1000 });
    bucket.charge(1000);
    expect(await bucket.admit()).toMatchObject({ allowed: false, remaining: 0, waitS: 1 });
    await vi.advanceTimersByTimeAsync(500);
    expect(await bucket.admit()).toMatchObject({ allowed: true, remaining: 500 });
    expect(world.changes).toEqual([false]);
  },
);

it.each(['away', 'hangs'] as const)(
  'while the shared buckets are away, (%s) shares again with the first settlement after it',
  async (mode) => {
    const { world, open, balances } = setUp();
    const limiter = open();
    world.mode = mode;
    const bucket = limiter.bucket('key', policy);
    bucket.charge(1);
    await vi.advanceTimersByTimeAsync(300);
    world.mode = 'there';
    await balances.charge([{ id: 'key', costMs: 5000 }]);
    bucket.charge(1);
    await vi.advanceTimersByTimeAsync(350);
    expect(world.changes).toEqual([false, true]);
    expect(bucket.status().allowed).toBe(false);
  },
);

it('while the shared buckets are away, charges nothing afterwards that it could not report', async () => {
  const { world, open, balances } = setUp();
  const limiter = open();
  world.mode = 'away';
  const bucket = limiter.bucket('key', policy);
  for (let round = 0; round < 100; round++) {
    bucket.charge(1000);
    await vi.advanceTimersByTimeAsync(60);
  }
  world.mode = 'there';
  bucket.charge(1);
  await vi.advanceTimersByTimeAsync(60);
  expect((await balances.charge([{ id: 'key', costMs: 0 }]))[0]).toBeLessThan(10);
});
