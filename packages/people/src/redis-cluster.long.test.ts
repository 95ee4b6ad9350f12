// Runs the people store's tests against a Redis Cluster.
import { openRedisCluster, useRedisCluster } from '@playline/testkit';
import { afterAll, describe, vi } from 'vitest';

// Property tests run as often as in `npm test`. A single server runs the same scripts in more programs; a cluster only
// changes the names of keys, which each program uses.
vi.stubEnv('PLAYLINE_TEST_ALL', undefined);
const cluster = await openRedisCluster();
afterAll(() => cluster.close());
useRedisCluster(cluster, 4);

const suites = 'graph consents catch-up-consents fences guards holds suspects unlink race programs cells'.split(' ');
for (const suite of suites) describe(suite, async () => void (await import(`./${suite}.integration.test.ts`)));
