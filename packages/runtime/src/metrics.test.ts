import { expect, it } from 'vitest';
import { createMetrics } from './metrics.ts';
import { VERSION } from './version.ts';

it('two services in one process have separate metrics', async () => {
  const [first, second] = [createMetrics('first'), createMetrics('second')];
  first.counter('rows_total', 'rows', ['table']).inc({ table: 'events' }, 3);
  second.counter('rows_total', 'rows', ['table']);
  expect(await first.text()).toContain('rows_total{table="events",service="first"} 3');
  expect(await second.text()).not.toContain('events');
});

it('the metrics contain the version of the running release', async () => {
  expect(await createMetrics('gateway').text()).toContain(
    `playline_build_info{version="${VERSION}",service="gateway"} 1`,
  );
});

it('a collected gauge updates its values on every scrape', async () => {
  const metrics = createMetrics('test');
  let waiting = ['a', 'b'];
  metrics.collectedGauge('waiting', 'waiting requests', {
    labelNames: ['name'],
    collect: async (gauge) => {
      gauge.reset();
      for (const name of waiting) gauge.set({ name }, 1);
    },
  });
  expect(await metrics.text()).toContain('waiting{name="a",service="test"} 1');
  waiting = ['b'];
  const text = await metrics.text();
  expect(text).toContain('waiting{name="b",service="test"} 1');
  expect(text).not.toContain('name="a"');
});
