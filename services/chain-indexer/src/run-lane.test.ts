import { NodeFault } from '@playline/chain';
import { until } from '@playline/testkit';
import { expect, it, onTestFinished } from 'vitest';
import type { LaneStep } from './lane.ts';
import { NodesFault } from './node-pool.ts';
import { openLane } from './run-lane.ts';

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
  throw new NodesFault(0, new NodeFault('unreachable', 'cannot reach the node'));
};

it('a lane whose nodes fail is ready for 30 s, and is then not ready until a node responds', async () => {
  const { running, clock, script, untilStepped } = openTestLane();
  await untilStepped();
  script.step = unreachable;
  await untilStepped();
  clock.nowMs = 30_000;
  expect(running).toMatchObject({ isWorking: true, reason: 'no node responds: cannot reach the node' });
  clock.nowMs += 50;
  expect(running).toMatchObject({ isWorking: false, silentMs: 30_000 });
  script.step = async () => 'idle';
  await until('the lane works again', () => running.isWorking);
  expect(running).toMatchObject({ reason: null, silentMs: 0 });
});

it('a lane is not ready after 30 s if a node accepts a request and never responds', async () => {
  const { running, clock, script, untilStepped } = openTestLane();
  await untilStepped();
  const response = Promise.withResolvers<LaneStep>();
  script.step = () => response.promise;
  await until('the lane polls', () => script.steps > 2);
  clock.nowMs = 30_050;
  expect(running).toMatchObject({ isWorking: false, reason: 'no response from nodes or brokers for 30 s' });
  response.resolve('idle');
  await until('the lane works again', () => running.isWorking);
});

it('a lane that polls once a minute is not silent between polls', async () => {
  const { running, clock, script } = openTestLane(60_000);
  await until('the lane has polled', () => script.steps === 1);
  await until('the lane waits', () => running.silentMs === 0);
  clock.nowMs = 60_000;
  expect(running).toMatchObject({ isWorking: true, silentMs: 0 });
  clock.nowMs = 90_000;
  expect(running.isWorking).toBe(false);
});

it('a lane with a stalled chain is ready, and reports the stall unless there is another fault', async () => {
  const { running, script, watch, untilStepped } = openTestLane();
  await untilStepped();
  expect(running).toMatchObject({ isAdvancing: true, reason: null });
  watch.stall = { ms: 130_500, block: 77 };
  const reason = 'no node has had a new block for 130 s; the latest is 77';
  expect(running).toMatchObject({ isWorking: true, isAdvancing: false, reason });
  script.step = unreachable;
  await untilStepped();
  expect(running.reason).toBe('no node responds: cannot reach the node');
});

it('a lane on standby is neither silent nor degraded, even while its chain is stalled', async () => {
  const { running, script, watch } = openTestLane();
  script.step = async () => 'inactive';
  watch.stall = { ms: 130_500, block: 77 };
  await until('the lane is on standby', () => running.reason === 'another process indexes this chain');
  expect(running).toMatchObject({ isWorking: true, isAdvancing: true });
  script.step = async () => 'idle';
  await until('the lane owns its chain', () => !running.isAdvancing);
});

it('a lane is not silent during a step of several minutes that keeps publishing', async () => {
  const { running, lane, clock, script, untilStepped } = openTestLane();
  await untilStepped();
  const done = Promise.withResolvers<LaneStep>();
  script.step = () => done.promise;
  await until('the lane works', () => script.steps > 2);
  for (let second = 10; second <= 300; second += 10) {
    [clock.nowMs, lane.workedAtMs] = [second * 1000, second * 1000];
    expect(running).toMatchObject({ isWorking: true, silentMs: 0 });
  }
  clock.nowMs += 30_000;
  expect(running.isWorking).toBe(false);
  done.resolve('idle');
});

it('a lane polls a quarter as often after half a minute without a new final block, until one appears', async () => {
  const { lane, clock, script } = openTestLane(200);
  let steppedAt: number[] = [];
  script.step = async () => {
    steppedAt.push(performance.now());
    return 'idle';
  };
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
