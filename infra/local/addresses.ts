// Addresses and logins of a stack's stores.
import { DATABASE } from './clickhouse.ts';
import { redisAddress } from './redis.ts';
import { registryAddress } from './registry.ts';
import type { Secrets } from './secrets.ts';
import type { StackSecurity } from './security.ts';
import type { StackFile } from './stack-file.ts';

export type StackAddresses = Pick<StackFile, 'clickhouse' | 'redis' | 'kafka' | 'registry' | 'security'>;

type PortOf = (name: string) => number;

/** Addresses without TLS; in a stack with TLS only the stack itself uses them. */
export function insideAddresses(stack: {
  port: PortOf;
  brokers: readonly string[];
  secrets: Secrets;
  security: StackSecurity | null;
}): StackAddresses {
  const { port, brokers, secrets, security } = stack;
  return {
    clickhouse: {
      url: `http://127.0.0.1:${port('clickhouse')}`,
      user: 'operator',
      password: secrets.operatorPassword,
      database: DATABASE,
    },
    redis: redisAddress(port('redis'), security?.redis ?? { password: secrets.redisPassword }),
    kafka: brokers.map((name) => `127.0.0.1:${port(name)}`),
    registry: registryAddress(port('registry')),
  };
}

export function securedAddresses(
  inside: StackAddresses,
  { port, security }: { port: PortOf; security: StackSecurity },
): StackAddresses {
  const { caFile, kafka, redis, registry } = security;
  return {
    clickhouse: { ...inside.clickhouse, url: `https://127.0.0.1:${port('clickhouse-secured')}` },
    redis: redisAddress(port('redis-secured'), redis, 'rediss'),
    kafka: [`127.0.0.1:${port('kafka-secured')}`],
    registry: registryAddress(port('registry-secured'), 'https'),
    security: { caFile, kafka, registry },
  };
}
