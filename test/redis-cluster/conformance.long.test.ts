// Runs the tests of the contract for ingest against a Redis Cluster. The whole-stack test on a cluster mints.
import { openRedisCluster, useRedisCluster } from '@playline/testkit';
import { afterAll, describe } from 'vitest';

const cluster = await openRedisCluster();
afterAll(() => cluster.close());
useRedisCluster(cluster, 4);

describe('messages', async () => void (await import('../conformance/messages.test.ts')));
describe('consent', async () => void (await import('../conformance/consent.test.ts')));
describe('endpoint', async () => void (await import('../conformance/endpoint.test.ts')));
describe('rate limit', async () => void (await import('../conformance/rate-limit.test.ts')));
