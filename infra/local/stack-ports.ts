import { brokerName } from './kafka.ts';
import { portNamesOf, type ServiceEntry } from './services.ts';
import type { StackOptions } from './stack-options.ts';

const STORE_PORTS = ['kafka', 'controller', 'registry', 'redis', 'clickhouse'] as const;
/** Ports for clients in a stack with TLS. */
const SECURED_PORTS = ['kafka-secured', 'registry-secured', 'redis-secured', 'clickhouse-secured'] as const;

/** Names of a stack's brokers. */
export const brokersOf = ({ kafkaBrokers = 1 }: StackOptions): string[] =>
  Array.from({ length: kafkaBrokers }, (_, index) => brokerName(index + 1));

/** Names of all ports that a stack listens on. @throws RangeError for options that exclude each other */
export function portNamesFor(options: StackOptions, services: readonly ServiceEntry[]): string[] {
  const front = options.kafkaFrontPort === undefined ? [] : ['kafka-front'];
  if (options.security === true && options.kafkaBrokers !== undefined && options.kafkaBrokers > 1)
    throw new RangeError('security: the listener with TLS is made for one broker');
  const chain = options.chain === true ? ['chain'] : [];
  const secured = options.security === true ? SECURED_PORTS : [];
  return [...STORE_PORTS, ...secured, ...brokersOf(options).slice(1), ...front, ...chain, ...portNamesOf(services)];
}
