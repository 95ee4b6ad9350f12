import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { createMetrics } from './metrics.ts';

it('keeps the metrics of two services in one process apart', async () => {
  const [first, second] = [createMetrics('first'), createMetrics('second')];
  first.counter('rows_total', 'rows', ['table']).inc({ table: 'events' }, 3);
  second.counter('rows_total', 'rows', ['table']);
  expect(await first.text()).toContain('rows_total{table="events",service="first"} 3');
  expect(await second.text()).not.toContain('events');
});

it('asks for the values of a collected gauge each time it is read', async () => {
  const metrics = createMetrics('asked');
  let waiting = ['a', 'b'];
  metrics.collectedGauge('waiting', 'what waits', {
    labelNames: ['name'],
    collect: async (gauge) => {
      gauge.reset();
      for (const name of waiting) gauge.set({ name }, 1);
    },
  });
  expect(await metrics.text()).toContain('waiting{name="a",service="asked"} 1');
  waiting = ['b'];
  const text = await metrics.text();
  expect(text).toContain('waiting{name="b",service="asked"} 1');
  expect(text).not.toContain('name="a"');
});

it('tells how late the event loop was since the last reading, under one name each', async () => {
  const metrics = createMetrics('held');
  const passed = (ms: number) => {
    const endMs = performance.now() + ms;
    return until('some looks', () => performance.now() > endMs);
  };
  // A delay is the distance of two looks, and a reading begins anew: none in between.
  await passed(1_200);
  const endMs = performance.now() + 2_200;
  while (performance.now() < endMs);
  await passed(1_200);
  const text = await metrics.text();
  for (const part of ['min', 'max', 'mean', 'stddev', 'p50', 'p90', 'p99'])
    expect(text.match(new RegExp(`^nodejs_eventloop_lag_${part}_seconds\\{`, 'gm'))).toHaveLength(1);
  const maxS = Number(/^nodejs_eventloop_lag_max_seconds\{.*\} (\S+)$/m.exec(text)?.[1]);
  expect(maxS).toBeGreaterThan(0.9);
});
