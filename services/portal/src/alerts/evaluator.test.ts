import type { AuditEntry, ProjectRecord } from '@playline/access-keys';
import type { AlertStore, Finding } from '@playline/alerts';
import { createMemoryAlerts } from '@playline/alerts/memory';
import type { Metrics } from '@playline/runtime';
import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { openAlertEvaluator } from './evaluator.ts';

const scope = { projectId: 'demo', environmentId: 'demo-production' };
const finding: Finding = { rule: 'NoMessages', ...scope, value: 7, text: 'None.' };

it('an entry whose confirmation is lost is appended again with the same id and time, without another delivery', async () => {
  const memory = createMemoryAlerts();
  // A change that remains is due immediately.
  const store: AlertStore = { ...memory, claim: () => memory.claim(Number.MAX_SAFE_INTEGER) };
  const entries: AuditEntry[] = [];
  let deliveries = 0;
  const evaluator = openAlertEvaluator({
    store,
    everyMs: 10,
    findAlerts: async () => new Map([[finding.rule, [finding]]]),
    projects: { all: async () => [{ id: 'demo' } as ProjectRecord] },
    delivery: { deliver: async () => [{ channel: 'webhook', reason: `failure ${++deliveries}` }] },
    audit: {
      append: async (entry) => {
        entries.push(entry);
        if (entries.filter(({ action }) => action === entry.action).length === 1) throw new Error('no confirmation');
      },
    },
    metrics: { counter: () => ({ inc: () => {} }) } as unknown as Pick<Metrics, 'counter'>,
    onFault: () => {},
  });
  await until('both entries are appended again', () => entries.length === 4);
  await evaluator.close();
  expect(await store.claim(Number.MAX_SAFE_INTEGER)).toBeNull();
  const [fired, failed] = ['alert.fired', 'alert.delivery-failed'].map((action) =>
    entries.filter((entry) => entry.action === action),
  );
  expect([fired?.[0], failed?.[0]]).toEqual([fired?.[1], failed?.[1]]);
  expect(fired?.[0]?.identity?.entryId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(fired?.[0]?.identity?.entryId).not.toBe(failed?.[0]?.identity?.entryId);
  expect([failed?.[0]?.detail, deliveries]).toEqual([{ channel: 'webhook', reason: 'failure 1', of: 'fired' }, 1]);
});
