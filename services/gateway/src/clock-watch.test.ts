import { createMetrics } from '@playline/runtime';
import { expect, it, onTestFinished, vi } from 'vitest';
import { CLOCK_OFFSET_MAX_MS, createClockWatch, startClockComparison } from './clock-watch.ts';
import { consentChange, erase, putConsent } from './test/audience-calls.ts';
import { message, openGateway } from './test/open-gateway.ts';

function openClocks() {
  const clocks = { wall: 1_000_000_000_000, monotonic: 0 };
  const watch = createClockWatch({ wallClockMs: () => clocks.wall, monotonicMs: () => clocks.monotonic });
  const advance = (ms: number) => {
    clocks.wall += ms;
    clocks.monotonic += ms;
  };
  return { clocks, watch, advance };
}

it('the clock watch reports no error before the first comparison or for offsets of up to an hour', () => {
  const { clocks, watch, advance } = openClocks();
  expect(watch.fault()).toBeNull();
  for (const offsetMs of [CLOCK_OFFSET_MAX_MS, -CLOCK_OFFSET_MAX_MS, 0]) {
    watch.observe(clocks.wall + offsetMs);
    advance(60_000);
    expect(watch.fault()).toBeNull();
  }
});

it('without traffic, the clock watch detects that the wall clock was changed or corrected', () => {
  const { clocks, watch, advance } = openClocks();
  watch.observe(clocks.wall);
  advance(60_000);
  clocks.wall += 2 * CLOCK_OFFSET_MAX_MS;
  expect(watch.fault()).toContain('120 min ahead of');
  clocks.wall -= 4 * CLOCK_OFFSET_MAX_MS;
  expect(watch.fault()).toContain('120 min behind');
  clocks.wall += 2 * CLOCK_OFFSET_MAX_MS;
  expect(watch.fault()).toBeNull();
});

it('a comparison expires after ten minutes, so that a suspended machine does not refuse requests forever', () => {
  const { clocks, watch, advance } = openClocks();
  watch.observe(clocks.wall);
  clocks.wall += 2 * CLOCK_OFFSET_MAX_MS;
  advance(600_000);
  expect(watch.fault()).not.toBeNull();
  advance(1);
  expect(watch.fault()).toBeNull();
});

it('messages, consent changes and erasures return 500 while the clock is wrong', async () => {
  const { clocks, watch } = openClocks();
  const gateway = await openGateway({ clock: watch });
  watch.observe(clocks.wall + 2 * CLOCK_OFFSET_MAX_MS);
  expect((await gateway.post({ messages: [message()] })).status).toBe(500);
  expect((await putConsent(gateway, consentChange())).status).toBe(500);
  expect((await erase(gateway)).status).toBe(500);
  expect(gateway.producer.sent).toEqual([]);
  watch.observe(clocks.wall);
  expect((await gateway.post({ messages: [message()] })).status).toBe(200);
});

it('startClockComparison compares before it resolves, and repeats the comparison without traffic', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const { clocks, watch, advance } = openClocks();
  const redis = { at: clocks.wall - 2 * CLOCK_OFFSET_MAX_MS };
  const comparison = await startClockComparison(watch, async () => redis.at);
  onTestFinished(() => void comparison.close());
  expect(watch.fault()).toContain('120 min ahead of');
  advance(3_600_000);
  expect(watch.fault()).toBeNull();
  await vi.advanceTimersByTimeAsync(30_000);
  expect(watch.fault()).toContain('180 min ahead of');
});

it('startClockComparison resolves without Redis, and the clock watch uses acknowledgements instead', async () => {
  const { clocks, watch } = openClocks();
  const comparison = await startClockComparison(watch, () => Promise.reject(new Error('unavailable')));
  onTestFinished(() => void comparison.close());
  expect(watch.fault()).toBeNull();
  watch.observe(clocks.wall + 2 * CLOCK_OFFSET_MAX_MS);
  expect(watch.fault()).not.toBeNull();
});

it('the clock watch exposes the offset of the clock as a metric', async () => {
  const { clocks, watch } = openClocks();
  const metrics = createMetrics('gateway');
  watch.reportOffset(metrics);
  watch.observe(clocks.wall - 12_500);
  expect(await metrics.text()).toContain('playline_gateway_clock_ahead_seconds{service="gateway"} 12.5');
});
