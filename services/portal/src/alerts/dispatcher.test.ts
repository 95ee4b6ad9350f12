import type { AuditEntry, ProjectRecord } from '@playline/access-keys';
import { ALERT_CHANNELS, type AlertChange, RETRY_MS, toChange } from '@playline/alerts';
import { createMemoryAlerts } from '@playline/alerts/memory';
import { until } from '@playline/testkit';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createAlertDelivery } from './delivery.ts';
import { createDispatcher, type DispatcherParts } from './dispatcher.ts';
import { openWebhookReceiver } from './test/receivers.ts';

const RULES = ['NoMessages', 'MintsPending'] as const;

const toAlertChange = (projectId: string, rule: (typeof RULES)[number], state: AlertChange['state'] = 'fired') => {
  const finding = { rule, projectId, environmentId: `${projectId}-production`, value: 7, text: 'None.' };
  return toChange(state, finding, { firedAt: 1, changedAt: 1 });
};

/** Opens a store whose clock can be advanced, and dispatchers that share it. */
function open(parts: Partial<DispatcherParts>) {
  const memory = createMemoryAlerts();
  let aheadMs = 0;
  let pending = 0;
  const store: DispatcherParts['store'] = {
    ...memory,
    claim: (channel, nowMs) => memory.claim(channel, nowMs + aheadMs),
    settle: async (delivery, failure, nowMs) => {
      await memory.settle(delivery, failure, nowMs);
      pending -= failure === null ? 1 : 0;
    },
  };
  const openDispatcher = () => {
    const closed = new AbortController();
    const own: DispatcherParts = {
      store,
      projects: { all: async () => ['a', 'b'].map((id) => ({ id }) as ProjectRecord) },
      delivery: { deliver: async () => null },
      audit: { append: async () => {} },
      onFault: () => {},
      ...parts,
    };
    const dispatcher = createDispatcher(own, closed.signal);
    const close = async () => {
      closed.abort();
      await dispatcher.settled();
    };
    return { start: dispatcher.start, close };
  };
  return {
    openDispatcher,
    pending: () => pending,
    write: async (...changes: AlertChange[]) => {
      pending += ALERT_CHANNELS.length * changes.length;
      await store.write('', { changed: [], removed: [], changes }, 0);
    },
    /** Unsettled deliveries become due again. */
    advance: () => {
      aheadMs += RETRY_MS;
    },
  };
}

it('an entry whose confirmation is lost is appended again with the same id and time, without another delivery', async () => {
  const entries: AuditEntry[] = [];
  let deliveries = 0;
  const { write, openDispatcher, advance, pending } = open({
    delivery: { deliver: async ({ channel }) => (channel === 'webhook' ? `failure ${++deliveries}` : null) },
    audit: {
      append: async (entry) => {
        entries.push(entry);
        if (entries.filter(({ action }) => action === entry.action).length === 1) throw new Error('no confirmation');
      },
    },
  });
  await write(toAlertChange('a', 'NoMessages'));
  const dispatcher = openDispatcher();
  await until('both entries are appended again', () => {
    advance();
    dispatcher.start();
    return pending() === 0;
  });
  await dispatcher.close();
  const [fired, failed] = ['alert.fired', 'alert.delivery-failed'].map((action) =>
    entries.filter((entry) => entry.action === action),
  );
  expect([fired?.length, failed?.length, deliveries]).toEqual([2, 2, 1]);
  expect([fired?.[0], failed?.[0]]).toEqual([fired?.[1], failed?.[1]]);
  expect(fired?.[0]?.identity?.entryId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(fired?.[0]?.identity?.entryId).not.toBe(failed?.[0]?.identity?.entryId);
  expect(failed?.[0]?.detail).toEqual({ channel: 'webhook', reason: 'failure 1', of: 'fired' });
});

it('a webhook that does not respond delays neither e-mails, nor the audit log, nor webhooks of other projects', async () => {
  const delivered: string[] = [];
  let respond = () => {};
  const { write, openDispatcher } = open({
    delivery: {
      deliver: async ({ channel, change: { projectId, state } }) => {
        if (channel === 'webhook' && projectId === 'a') await new Promise<void>((resolve) => (respond = resolve));
        delivered.push(`${channel} of ${projectId}: ${state}`);
        return null;
      },
    },
    audit: { append: async ({ projectId, action }) => void delivered.push(`entry of ${projectId}: ${action}`) },
  });
  const dispatcher = openDispatcher();
  await write(toAlertChange('a', 'NoMessages'));
  dispatcher.start();
  await until('the webhook does not respond', () => delivered.length === 2);
  // The first delivery is still running.
  await write(toAlertChange('a', 'NoMessages', 'cleared'), toAlertChange('b', 'NoMessages'));
  dispatcher.start();
  const expected = [
    ...['e-mail of a: cleared', 'e-mail of a: fired', 'e-mail of b: fired'],
    ...['entry of a: alert.cleared', 'entry of a: alert.fired', 'entry of b: alert.fired', 'webhook of b: fired'],
  ];
  await until('all other deliveries arrive', () => delivered.length === expected.length);
  expect(delivered.toSorted()).toEqual(expected);
  respond();
  await until('the next webhook waits', () => delivered.at(-1) === 'webhook of a: fired');
  respond();
  await dispatcher.close();
});

it('a webhook receives the changes of a project in order, whatever attempts fail and whatever processes exit', async () => {
  let statuses: readonly number[] = [];
  const { received, port } = await openWebhookReceiver((request) => statuses[request % statuses.length] ?? 204);
  const config = { PORTAL_SECRET: Buffer.alloc(32, 1), ALERT_PRIVATE_WEBHOOKS: true };
  const delivery = createAlertDelivery({ config, origin: new URL('https://portal.example'), pausesMs: [0, 0] });
  const project = { id: 'a', environments: [], alertWebhook: `http://127.0.0.1:${port}` } as unknown as ProjectRecord;
  const step = fc.oneof(
    fc.constantFrom(...RULES).map((rule) => ({ rule }) as const),
    fc.nat(1).map((start) => ({ start }) as const),
    fc.constant({ start: null }),
  );
  const scenario = fc.record({
    steps: fc.array(step, { minLength: 5, maxLength: 20 }),
    statuses: fc.array(fc.constantFrom(204, 204, 503, 0), { minLength: 1, maxLength: 7 }),
  });
  await fc.assert(
    fc.asyncProperty(scenario, async (run) => {
      statuses = run.statuses;
      received.length = 0;
      const { write, openDispatcher, advance, pending } = open({ delivery, projects: { all: async () => [project] } });
      let dispatchers = [openDispatcher(), openDispatcher()];
      const restart = async () => {
        await Promise.all(dispatchers.map(({ close }) => close()));
        advance();
        dispatchers = [openDispatcher(), openDispatcher()];
      };
      const written: AlertChange[] = [];
      for (const step of run.steps) {
        if ('start' in step) await (step.start === null ? restart() : dispatchers[step.start]?.start());
        else {
          const isFiring = written.findLast(({ rule }) => rule === step.rule)?.state === 'fired';
          const change = toAlertChange('a', step.rule, isFiring ? 'cleared' : 'fired');
          written.push(change);
          await write(change);
        }
      }
      await restart();
      await until('every delivery is settled', () => {
        dispatchers[0]?.start();
        return pending() === 0;
      });
      await restart();
      const ids = received.map(({ body }) => JSON.parse(body).id as string);
      const positions = ids.map((id) => written.findIndex((change) => change.id === id));
      expect(positions).toEqual(positions.toSorted((a, b) => a - b));
      expect(new Set(positions).size).toBe(written.length);
    }),
    { numRuns: runsOf({ quick: 20, all: 200 }) },
  );
});
