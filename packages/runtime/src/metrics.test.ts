import { expect, it } from 'vitest';
import { createMetrics } from './metrics.ts';

it('keeps the metrics of two services in one process apart', async () => {
  const [first, second] = [createMetrics('first'), createMetrics('second')];
  first.counter('rows_total', 'rows', ['table']).inc({ table: 'events' }, 3);
  second.counter('rows_total', 'rows', ['table']);
  expect(await first.text()).toContain('rows_total{table="events",service="first"} 3');
  expect(await second.text()).not.toContain('events');
});
