import type { Cluster, Redis } from 'ioredis';
import { Redis as Client } from 'ioredis';
import { deleteKeys, openRenamingClient } from './cluster-names.ts';
import { testStores } from './stores.ts';

/** Connection options of a store in Redis. */
export interface RedisTarget {
  readonly url: string;
  readonly cluster?: boolean;
  readonly cells?: number;
}

/** Returns the settings of a process that uses this Redis. */
export const toRedisSettings = ({ url, cells = 0, cluster = false }: RedisTarget): Record<string, string> => ({
  REDIS_URL: url,
  ...(cluster && { REDIS_CLUSTER: 'true', IDENTITY_CELLS: String(cells) }),
});

interface ClusterTarget extends RedisTarget {
  readonly client: Cluster;
  readonly cells: number;
}

let cluster: ClusterTarget | null = null;

/** Test files that are imported afterwards use this cluster instead of the test run's Redis. */
export function useRedisCluster({ url, client }: Pick<ClusterTarget, 'url' | 'client'>, cells: number): void {
  cluster = { url, client, cells, cluster: true };
}

/** The test run's Redis, or the cluster that the test file uses. */
export function testRedis(): RedisTarget {
  if (cluster === null) return { url: testStores().redis };
  const { url, cells } = cluster;
  return { url, cells, cluster: true };
}

export interface TestRedisClient {
  /** Accepts the key names of a single server. */
  readonly client: Redis;
  deleteKeys(pattern: string): Promise<void>;
  close(): void;
}

export function openTestRedis(): TestRedisClient {
  if (cluster !== null) {
    const { client, cells } = cluster;
    const names = openRenamingClient(client, cells);
    return { client: names, deleteKeys: (pattern) => deleteKeys(client, pattern), close: () => {} };
  }
  const client = new Client(testStores().redis);
  return { client, deleteKeys: (pattern) => deleteKeys(client, pattern), close: () => client.disconnect() };
}

/** The cluster that the test file uses as if it were an empty database, or null. */
export function clusterDatabase() {
  if (cluster === null) return null;
  const target = testRedis();
  const client = openRenamingClient(cluster.client, cluster.cells);
  return { url: target.url, target, client, close: async () => void (await client.flushdb()) };
}
