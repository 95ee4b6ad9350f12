// The nodes of each store of a stack.
import { type ClickHouseCluster, clickhouseSpec, clickhouseSpecs } from './clickhouse.ts';
import type { Java } from './java.ts';
import { kafkaSpec } from './kafka.ts';
import type { ProcessSpec } from './keeper.ts';
import { nodeNames } from './node-names.ts';
import type { StackPaths } from './paths.ts';
import { redisSpec } from './redis.ts';
import { type RedisClusterNodes, redisClusterSpecs } from './redis-cluster.ts';
import { registrySpec } from './registry.ts';
import type { Secrets } from './secrets.ts';
import type { StackSecurity } from './security.ts';
import { nodeCountsOf, type StackOptions } from './stack-options.ts';

export type StoreName = 'kafka' | 'registry' | 'redis' | 'clickhouse';

interface StoreSetting {
  readonly java: Java;
  readonly options: StackOptions;
  readonly secrets: Secrets;
  readonly security: StackSecurity | null;
  /** Returns the claimed port with a name. */
  readonly port: (name: string) => number;
}

/** Describes the processes of all nodes. */
export async function storeNodes(
  paths: StackPaths,
  setting: StoreSetting,
): Promise<Record<StoreName, readonly ProcessSpec[]>> {
  const { java, secrets, security, port } = setting;
  const secured = security === null ? null : { port: port('redis-secured'), security };
  const [redis, clickhouse] = [redisClusterOf(setting), clickhouseClusterOf(setting)];
  return {
    kafka: await brokerSpecs(paths, setting),
    registry: [registrySpec(paths, { java, port: port('registry') })],
    redis:
      redis === null
        ? [redisSpec(paths, { port: port('redis'), password: secrets.redisPassword, secured })]
        : redisClusterSpecs(paths, redis),
    clickhouse:
      clickhouse === null
        ? [clickhouseSpec(paths, { port: port('clickhouse'), secrets })]
        : clickhouseSpecs(paths, clickhouse.nodes, { clusters: [clickhouse], secrets }),
  };
}

type NodeSetting = Pick<StoreSetting, 'options' | 'port'>;

/** Returns the nodes of the Redis Cluster, or null for one server. */
export function redisClusterOf({
  options,
  secrets,
  port,
}: NodeSetting & Pick<StoreSetting, 'secrets'>): RedisClusterNodes | null {
  const { redis: count } = nodeCountsOf(options);
  if (count === 1) return null;
  const portsOf = (name: string) => nodeNames(name, count).map(port);
  return { ports: portsOf('redis'), busPorts: portsOf('redis-bus'), password: secrets.redisPassword };
}

/** Returns the ClickHouse nodes, of which the first is the home, or null for one server. */
export function clickhouseClusterOf({ options, port }: NodeSetting): ClickHouseCluster | null {
  const { clickhouse: count } = nodeCountsOf(options);
  if (count === 1) return null;
  const nativePorts = nodeNames('clickhouse-native', count).map(port);
  const toNode = (name: string, index: number) => ({ port: port(name), nativePort: nativePorts[index]! });
  return { name: 'playline_1', nodes: nodeNames('clickhouse', count).map(toNode) };
}

/** The first broker has the listeners for external clients. */
async function brokerSpecs(
  paths: StackPaths,
  { java, options, security, port }: Omit<StoreSetting, 'secrets'>,
): Promise<ProcessSpec[]> {
  const { kafkaFrontPort: advertisedPort } = options;
  const front = advertisedPort === undefined ? null : { port: port('kafka-front'), advertisedPort };
  const clusterSize = nodeCountsOf(options).kafka;
  const controllers = nodeNames('controller', clusterSize).map(port);
  const specs: ProcessSpec[] = [];
  // In sequence, because the first broker of a checkout creates the folder that the others copy.
  for (const [index, name] of nodeNames('kafka', clusterSize).entries()) {
    const ports = {
      kafka: port(name),
      controllers,
      front: index === 0 ? front : null,
      secured: security === null ? null : port('kafka-secured'),
    };
    specs.push(await kafkaSpec(paths, { java, ports, member: { id: index + 1, clusterSize }, security }));
  }
  return specs;
}
