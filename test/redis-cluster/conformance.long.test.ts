// Runs the tests of both contracts against a Redis Cluster, except those in which a proxy to a single server fails.
import { openRedisCluster, useRedisCluster } from '@playline/testkit';
import { afterAll, describe } from 'vitest';

const cluster = await openRedisCluster();
afterAll(() => cluster.close());
useRedisCluster(cluster, 4);

describe('messages', async () => void (await import('../conformance/messages.test.ts')));
describe('consent', async () => void (await import('../conformance/consent.test.ts')));
describe('endpoint', async () => void (await import('../conformance/endpoint.test.ts')));
describe('rate limit', async () => void (await import('../conformance/rate-limit.test.ts')));
describe('rows', async () => void (await import('../conformance/rows.test.ts')));
describe('chain reads', async () => void (await import('../conformance/chain-reads.test.ts')));
describe('mints', async () => void (await import('../conformance/mints.test.ts')));
