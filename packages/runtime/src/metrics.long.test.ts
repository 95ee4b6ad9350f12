import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { createMetrics } from './metrics.ts';

it('the lag metrics show that the event loop was blocked right after the previous scrape', async () => {
  const metrics = createMetrics('test');
  const wait = (ms: number) => {
    const endMs = performance.now() + ms;
    return until('the time has passed', () => performance.now() > endMs);
  };
  const parseMax = (text: string) => Number(/^nodejs_eventloop_lag_max_seconds\{.*\} (\S+)$/m.exec(text)?.[1]);
  // A delay is measured between two samples.
  await wait(1_200);
  expect(parseMax(await metrics.text())).toBeLessThan(0.9);
  const endMs = performance.now() + 2_200;
  while (performance.now() < endMs);
  await wait(1_200);
  const text = await metrics.text();
  for (const statistic of ['min', 'max', 'mean', 'stddev', 'p50', 'p90', 'p99'])
    expect(text.match(new RegExp(`^nodejs_eventloop_lag_${statistic}_seconds\\{`, 'gm'))).toHaveLength(1);
  expect(parseMax(text)).toBeGreaterThan(0.9);
  await metrics.text();
  await wait(2_200);
  await metrics.text();
  expect(parseMax(await metrics.text())).toBeLessThan(0.9);
});
