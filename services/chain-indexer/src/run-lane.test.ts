import { NodeFault } from '@playline/chain';
import { until } from '@playline/testkit';
import { expect, it, onTestFinished } from 'vitest';
import type { LaneStep } from './lane.ts';
import { NodesFault } from './node-pool.ts';
import { openLane } from './run-lane.ts';

/** A lane whose steps and clock the test controls. */
function openTestLane(pollMs = 50) {
  const clock = { nowMs: 0 };
  const watch: { stall: { ms: number; block: number } | null } = { stall: null };
  const script = { steps: 0, step: async (): Promise<LaneStep> => 'idle' };
  const lane = {
    isHalted: false,
    workedAtMs: Number.NEGATIVE_INFINITY,
    foundAtMs: Number.NEGATIVE_INFINITY,
    step: () => {
      script.steps++;
      return script.step();
    },
    close: async () => {},
  };
  const running = openLane({ chain: 'demo-chain', lane, watch, pollMs, nowMs: () => clock.nowMs });
  onTestFinished(() => running.close());
  const untilStepped = async () => {
    const before = script.steps;
    await until('the lane has stepped', () => script.steps > before + 1);
  };
  return { running, lane, clock, script, watch, untilStepped };
}

const unreachable = async () => {
  throw new NodesFault(0, new NodeFault('unreachable', 'it cannot be reached'));
};

it('a chain whose nodes fail is ready for 30 s, and then not ready, with the reason, until a node responds', async () => {
  const { running, clock, script, untilStepped } = openTestLane();
  await untilStepped();
  script.step = unreachable;
  await untilStepped();
  clock.nowMs = 30_000;
  expect(running).toMatchObject({ working: true, reason: 'no node responds: it cannot be reached' });
  clock.nowMs += 50;
  expect(running).toMatchObject({ working: false, silentMs: 30_000 });
  script.step = async () => 'idle';
  await until('the lane works again', () => running.working);
  expect(running).toMatchObject({ reason: null, silentMs: 0 });
});

it('a node that accepts a request and never responds counts as silent', async () => {
  const { running, clock, script, untilStepped } = openTestLane();
  await untilStepped();
  const response = Promise.withResolvers<LaneStep>();
  script.step = () => response.promise;
  await until('the lane polls', () => script.steps > 2);
  clock.nowMs = 30_050;
  expect(running).toMatchObject({ working: false, reason: 'no response from nodes or brokers for 30 s' });
  response.resolve('idle');
  await until('the lane works again', () => running.working);
});

it('a chain that is polled once a minute is not silent in between', async () => {
  const { running, clock, script } = openTestLane(60_000);
  await until('the lane has polled', () => script.steps === 1);
  await until('the lane waits', () => running.silentMs === 0);
  clock.nowMs = 60_000;
  expect(running).toMatchObject({ working: true, silentMs: 0 });
  clock.nowMs = 90_000;
  expect(running.working).toBe(false);
});

it('a stalled chain is working, and reports the stall unless there is another fault', async () => {
  const { running, script, watch, untilStepped } = openTestLane();
  await untilStepped();
  expect(running).toMatchObject({ moving: true, reason: null });
  watch.stall = { ms: 130_500, block: 77 };
  const reason = 'no node has had a new block for 130 s: 77 is the latest';
  expect(running).toMatchObject({ working: true, active: true, moving: false, reason });
  script.step = unreachable;
  await untilStepped();
  expect(running.reason).toBe('no node responds: it cannot be reached');
});

it('a step of minutes is not silent while it publishes', async () => {
  const { running, lane, clock, script, untilStepped } = openTestLane();
  await untilStepped();
  const done = Promise.withResolvers<LaneStep>();
  script.step = () => done.promise;
  await until('the lane works', () => script.steps > 2);
  for (let second = 10; second <= 300; second += 10) {
    [clock.nowMs, lane.workedAtMs] = [second * 1000, second * 1000];
    expect(running).toMatchObject({ working: true, silentMs: 0 });
  }
  clock.nowMs += 30_000;
  expect(running.working).toBe(false);
  done.resolve('idle');
});

it('a chain without a final block for half a minute is polled a quarter as often, until there is a final block', async () => {
  const { lane, clock, script } = openTestLane(200);
  let steppedAt: number[] = [];
  script.step = async () => {
    steppedAt.push(performance.now());
    return 'idle';
  };
  /** Milliseconds between two steps. */
  const gap = async () => {
    steppedAt = [];
    await until('the lane has stepped', () => steppedAt.length > 2);
    return steppedAt[2]! - steppedAt[1]!;
  };
  expect(await gap()).toBeLessThan(750);
  clock.nowMs = 30_000;
  expect(await gap()).toBeGreaterThan(750);
  lane.foundAtMs = clock.nowMs;
  expect(await gap()).toBeLessThan(750);
});
