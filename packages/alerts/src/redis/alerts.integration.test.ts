import { openRedisDatabase, type RedisDatabase, until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ActiveAlert, type AlertStep, isFiring, RETRY_MS, toChange } from '../active-alerts.ts';
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
  expect([await one.read(), await one.claim(Number.MAX_SAFE_INTEGER), await one.evaluatedAt()]).toEqual([
    [],
    null,
    null,
  ]);
  expect(await other.write('other', step, 1_000)).toBe(true);
  expect([await one.read(), await one.evaluatedAt()]).toEqual([[{ ...alert, acknowledged: null }], 1_000]);
  expect(await other.write('other', { changed: [], removed: ['demo-production NoMessages'], changes: [] }, 2_000)).toBe(
    true,
  );
  expect(await one.read()).toEqual([]);
  await close();
});

it('a change is claimed by one process, and again only if it was not settled in time', async () => {
  const { one, other, close } = await open('claim:');
  await one.takeTurn('one', TURN_MS);
  await one.write('one', step, 1_000);
  expect([await one.claim(1_000), await other.claim(1_000)]).toEqual([change, null]);
  expect(await other.claim(1_000 + RETRY_MS)).toEqual(change);
  const remaining = { ...change, isDelivered: true };
  await other.settle(change, remaining, 2_000);
  expect([await one.claim(2_000), await one.claim(2_000 + RETRY_MS)]).toEqual([null, remaining]);
  await one.settle(remaining, null, 3_000);
  expect(await one.claim(Number.MAX_SAFE_INTEGER)).toBeNull();
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
