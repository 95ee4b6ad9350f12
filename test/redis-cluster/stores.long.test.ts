// Runs the tests of the stores that share Redis with people data against a Redis Cluster.
import { openRedisBalances } from '@playline/rate-limit/redis';
import { openRedisCluster, testRedis, useRedisCluster } from '@playline/testkit';
import { afterAll, describe, expect, it } from 'vitest';

const cluster = await openRedisCluster();
afterAll(() => cluster.close());
useRedisCluster(cluster, 4);

describe('records', async () =>
  void (await import('../../packages/access-keys/src/records/records.integration.test.ts')));
describe('sessions', async () => void (await import('../../packages/access-keys/src/sessions.integration.test.ts')));
describe('usage', async () => void (await import('../../packages/access-keys/src/usage/usage.integration.test.ts')));
describe('alerts', async () => void (await import('../../packages/alerts/src/redis/alerts.integration.test.ts')));
describe('watermarks', async () => void (await import('../../packages/chain/src/watermarks.integration.test.ts')));
describe('claims', async () => void (await import('../../packages/mints/src/claims.integration.test.ts')));
describe('pending claims', async () => void (await import('../../packages/mints/src/pending.integration.test.ts')));

it('buckets of rate limits in different slots are charged by one call', async () => {
  const balances = openRedisBalances({ ...testRedis(), namespace: 'rates:' });
  const charges = Array.from({ length: 50 }, (_, at) => ({ id: `bucket-${at}`, costMs: 60_000 + at }));
  await expect.poll(() => balances.charge(charges).catch(() => null)).toHaveLength(50);
  const backlogs = await balances.charge(charges.map(({ id }) => ({ id, costMs: 0 })));
  expect(backlogs.every((backlogMs, at) => backlogMs > 50_000 + at)).toBe(true);
  await balances.close();
});
