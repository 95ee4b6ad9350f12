import { openRedisDatabase, type RedisDatabase, until } from '@playline/testkit';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  type ActiveAlert,
  ALERT_CHANNELS,
  type AlertChannel,
  type AlertStep,
  type AlertStore,
  isFiring,
  type PendingDelivery,
  RETRY_MS,
  toChange,
} from '../active-alerts.ts';
import { openRedisAlerts } from './index.ts';

const finding = {
  rule: 'NoMessages',
  projectId: 'demo',
  environmentId: 'demo-production',
  value: 7,
  text: 'None.',
} as const;
const alert: ActiveAlert = { ...finding, firedAt: 1_000, contrary: 0 };
const change = toChange('fired', finding, { firedAt: 1_000, changedAt: 1_000 });
const step: AlertStep = { changed: [alert], removed: [], changes: [change] };
const TURN_MS = 60_000;

let redis: RedisDatabase;
beforeAll(async () => {
  redis = await openRedisDatabase();
});
afterAll(() => redis.close());

async function open(namespace: string) {
  const [one, other] = [
    openRedisAlerts({ ...redis.target, namespace }),
    openRedisAlerts({ ...redis.target, namespace }),
  ];
  await until('both are connected', async () => (await one.read()).length + (await other.read()).length === 0);
  return { one, other, close: () => Promise.all([one.close(), other.close()]) };
}

it('one process has the turn, and a process that has lost it writes nothing', async () => {
  const { one, other, close } = await open('turn:');
  expect(await one.takeTurn('one', 1)).toBe(true);
  await until('the turn has expired', () => other.takeTurn('other', TURN_MS));
  expect(await one.takeTurn('one', TURN_MS)).toBe(false);
  expect(await one.write('one', step, 1_000)).toBe(false);
  expect(await one.read()).toEqual([]);
  expect([await one.claim('webhook', Number.MAX_SAFE_INTEGER), await one.evaluatedAt()]).toEqual([null, null]);
  expect(await other.write('other', step, 1_000)).toBe(true);
  expect([await one.read(), await one.evaluatedAt()]).toEqual([[{ ...alert, acknowledged: null }], 1_000]);
  expect(await other.write('other', { changed: [], removed: ['demo-production NoMessages'], changes: [] }, 2_000)).toBe(
    true,
  );
  expect(await one.read()).toEqual([]);
  await close();
});

it('a delivery is claimed by one process, and again only if it was not settled in time', async () => {
  const { one, other, close } = await open('claim:');
  await one.takeTurn('one', TURN_MS);
  await one.write('one', step, 1_000);
  const delivery = { channel: 'webhook', change, failure: null } as const;
  expect([await one.claim('webhook', 1_000), await other.claim('webhook', 1_000)]).toEqual([delivery, null]);
  expect(await other.claim('webhook', 1_000 + RETRY_MS)).toEqual(delivery);
  const failure = { channel: 'webhook', reason: 'status 503', failedAt: 2_000 } as const;
  for (const store of [other, one]) await store.settle(delivery, failure, 2_000);
  expect(await one.claim('webhook', Number.MAX_SAFE_INTEGER)).toBeNull();
  const entry = { channel: 'audit', change, failure: null } as const;
  expect(await one.claim('audit', 2_000)).toEqual(entry);
  await one.settle(entry, null, 2_000);
  expect(await one.claim('audit', 2_000)).toEqual({ ...entry, failure });
  await one.settle({ ...entry, failure }, null, 3_000);
  expect(await one.claim('audit', Number.MAX_SAFE_INTEGER)).toBeNull();
  await close();
});

type Step = 'write' | 'claim' | 'settle' | 'fail' | 'exit';

it('each channel of a project gets its changes in order and independently of others, whatever is not settled', async () => {
  const { one, other, close } = await open('order:');
  await one.takeTurn('one', 10 * TURN_MS);
  const kinds: Step[] = ['write', 'claim', 'claim', 'settle', 'fail', 'exit'];
  const scenario = fc.array(
    fc.record({
      kind: fc.constantFrom(...kinds),
      channel: fc.constantFrom(...ALERT_CHANNELS),
      projectId: fc.constantFrom('a', 'b'),
      store: fc.constantFrom(one, other),
    }),
    { maxLength: 40 },
  );
  let nowMs = 1_000;
  await fc.assert(
    fc.asyncProperty(scenario, async (steps) => {
      const expected = new Map<string, string[]>();
      const claimed = new Map<string, PendingDelivery>();
      const nameOf = ({ channel, change }: PendingDelivery) => `${channel} ${change.projectId}`;
      const textOf = ({ change, failure }: PendingDelivery) => `${change.id} ${failure?.channel}`;
      const add = (name: string, text: string) => expected.set(name, [...(expected.get(name) ?? []), text]);
      const claim = async (channel: AlertChannel, store: AlertStore) => {
        const found = await store.claim(channel, nowMs);
        if (found !== null) {
          expect([claimed.has(nameOf(found)), textOf(found)]).toEqual([false, expected.get(nameOf(found))?.[0]]);
          claimed.set(nameOf(found), found);
        }
        return found;
      };
      const settle = async (delivery: PendingDelivery, store: AlertStore, isFailed: boolean) => {
        const { channel } = delivery;
        const failure = isFailed && channel !== 'audit' ? { channel, reason: 'status 503', failedAt: nowMs } : null;
        await store.settle(delivery, failure, nowMs);
        claimed.delete(nameOf(delivery));
        expected.set(nameOf(delivery), expected.get(nameOf(delivery))!.slice(1));
        if (failure !== null) add(`audit ${delivery.change.projectId}`, `${delivery.change.id} ${channel}`);
      };
      for (const { kind, channel, projectId, store } of steps) {
        nowMs += 1;
        if (kind === 'write') {
          const written = toChange('fired', { ...finding, projectId }, { firedAt: nowMs, changedAt: nowMs });
          await one.write('one', { changed: [], removed: [], changes: [written] }, nowMs);
          for (const each of ALERT_CHANNELS) add(`${each} ${projectId}`, `${written.id} undefined`);
        }
        if (kind === 'claim') await claim(channel, store);
        const delivery = claimed.get(`${channel} ${projectId}`);
        if (delivery !== undefined && (kind === 'settle' || kind === 'fail'))
          await settle(delivery, store, kind === 'fail');
        if (kind === 'exit') {
          claimed.clear();
          nowMs += RETRY_MS;
        }
      }
      // Deliveries that are not settled delay only their own channel of their project.
      for (const channel of ALERT_CHANNELS) while ((await claim(channel, one)) !== null);
      const waiting = [...expected].filter(([, texts]) => texts.length > 0).map(([name]) => name);
      expect([...claimed.keys()].sort()).toEqual(waiting.sort());
      for (const delivery of claimed.values()) await settle(delivery, one, false);
      for (const channel of ALERT_CHANNELS)
        for (let next = await claim(channel, one); next !== null; next = await claim(channel, other))
          await settle(next, one, false);
      expect([...expected.values()].flat()).toEqual([]);
    }),
    { numRuns: runsOf({ quick: 50, all: 1_000 }) },
  );
  await close();
});

it('an acknowledgement applies until the alert fires again, whatever the clocks of the processes are', async () => {
  const { one, other, close } = await open('acknowledge:');
  await one.takeTurn('one', TURN_MS);
  await one.write('one', step, 1_000);
  if (isFiring(alert)) await other.acknowledge(alert, { by: 'ada', at: 500, firedAt: alert.firedAt });
  expect(await one.read()).toMatchObject([{ acknowledged: { by: 'ada', at: 500 } }]);
  await one.write('one', { changed: [{ ...alert, firedAt: 400 }], removed: [], changes: [] }, 2_000);
  expect(await one.read()).toMatchObject([{ acknowledged: null }]);
  await close();
});
