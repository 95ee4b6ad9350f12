// Runs the people store's tests against a Redis Cluster.
import { openRedisCluster, useRedisCluster } from '@playline/testkit';
import { afterAll, describe } from 'vitest';

const cluster = await openRedisCluster();
afterAll(() => cluster.close());
useRedisCluster(cluster, 4);

const suites = 'graph consents catch-up-consents fences guards holds suspects unlink race programs cells'.split(' ');
for (const suite of suites) describe(suite, async () => void (await import(`./${suite}.integration.test.ts`)));
