import { createMetrics } from '@playline/runtime';
import { expect, it } from 'vitest';
import type { MintLane } from './lane/mint-lane.ts';
import { createMinterMetrics } from './minter-metrics.ts';
import { createWorld, DEPTH } from './test/lane-world.ts';
import { CHAIN, SIGNER } from './test/mint-requests.ts';

async function openMeasuredMinter() {
  const metrics = createMetrics('minter');
  const requested = { count: 0 };
  const opened: { lane: MintLane | null } = { lane: null };
  const nowMs = (): number => world.time.ms;
  const measured = createMinterMetrics({
    metrics,
    clock: { monotonicMs: nowMs, wallClockMs: nowMs },
    workers: () => [{ lane: { chain: CHAIN, signer: SIGNER }, current: opened.lane, takeOvers: 1 }],
  });
  const world = createWorld((node) => [
    measured.watchNode(CHAIN, {
      ...node,
      head: (known) => {
        requested.count++;
        return node.head(known);
      },
      balanceOf: (address) => {
        requested.count++;
        return node.balanceOf(address);
      },
    }),
  ]);
  opened.lane = await world.takeOver();
  const measure = async (name: string) => {
    const line = (await metrics.text()).split('\n').find((each) => each.startsWith(`${name}{`));
    return line === undefined ? null : Number(line.split(' ').at(-1));
  };
  return { ...world, requested, lane: opened.lane, measure };
}

it('the silence metric measures how long there has been no higher block while assets are pending', async () => {
  const { lane, time, node, request, mine, measure } = await openMeasuredMinter();
  time.ms = 500_000;
  await lane.accept([request('a')]);
  await lane.turn();
  expect(await measure('playline_minter_head_silent_seconds')).toBe(0);
  time.ms += 90_000;
  await lane.turn();
  expect(await measure('playline_minter_head_silent_seconds')).toBe(90);
  node.isStopped = true;
  time.ms += 10_000;
  await lane.turn().catch(() => {});
  expect(await measure('playline_minter_head_silent_seconds')).toBe(100);
  node.isStopped = false;
  mine(1);
  await lane.turn();
  expect(await measure('playline_minter_head_silent_seconds')).toBe(0);
  mine(DEPTH);
  await lane.turn();
  time.ms += 90_000;
  await lane.turn();
  expect(await measure('playline_minter_head_silent_seconds')).toBe(0);
});

it('scraping the metrics sends no requests to nodes', async () => {
  const { lane, request, requested, measure } = await openMeasuredMinter();
  expect(await measure('playline_minter_funds_ether')).toBeNull();
  await lane.accept([request('a')]);
  await lane.turn();
  const { count } = requested;
  expect(await measure('playline_minter_funds_ether')).toBe(1_000);
  expect(requested.count).toBe(count);
});
