// The nodes of each store of a stack.
import { clickhouseSpec } from './clickhouse.ts';
import type { Java } from './java.ts';
import { kafkaSpec } from './kafka.ts';
import type { ProcessSpec } from './keeper.ts';
import { nodeNames } from './node-names.ts';
import type { StackPaths } from './paths.ts';
import { redisSpec } from './redis.ts';
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
  return {
    kafka: await brokerSpecs(paths, setting),
    registry: [registrySpec(paths, { java, port: port('registry') })],
    redis: [redisSpec(paths, { port: port('redis'), password: secrets.redisPassword, secured })],
    clickhouse: [clickhouseSpec(paths, { port: port('clickhouse'), secrets })],
  };
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
