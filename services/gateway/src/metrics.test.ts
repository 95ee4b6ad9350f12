import { createMetrics } from '@playline/runtime';
import { expect, it } from 'vitest';
import { createGatewayMetrics, ENVIRONMENTS_MAX } from './metrics.ts';

it('environments beyond the first hundred share one label value, so that the number of series is limited', async () => {
  const registry = createMetrics('gateway');
  const { onMessages } = createGatewayMetrics(registry);
  for (let each = 0; each < 2 * ENVIRONMENTS_MAX; each++)
    onMessages(`environment-${each}`, { accepted: 2, rejected: 1 });
  onMessages('environment-0', { accepted: 2, rejected: 0 });
  const text = await registry.text();
  expect(text.match(/playline_gateway_messages_accepted_total\{/g)).toHaveLength(ENVIRONMENTS_MAX + 1);
  const count = (kind: string, environment: string) =>
    Number(
      text.match(new RegExp(`messages_${kind}_total\\{environment="${environment}",service="gateway"\\} (\\d+)`))?.[1],
    );
  expect([count('accepted', 'environment-0'), count('rejected', 'environment-0')]).toEqual([4, 1]);
  expect([count('accepted', 'other'), count('rejected', 'other')]).toEqual([2 * ENVIRONMENTS_MAX, ENVIRONMENTS_MAX]);
});
