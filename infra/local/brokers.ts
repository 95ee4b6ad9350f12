import type { Java } from './java.ts';
import { kafkaSpec } from './kafka.ts';
import type { ProcessSpec } from './keeper.ts';
import type { Places } from './places.ts';
import type { StackSecurity } from './security.ts';
import type { StackOptions } from './stack-options.ts';
import { brokersOf } from './stack-ports.ts';

export interface BrokersOptions {
  readonly java: Java;
  readonly options: StackOptions;
  readonly security: StackSecurity | null;
  readonly port: (name: string) => number;
}

/** Every broker of a stack. The first is the controller, and has the listeners for clients other than the services. */
export function brokerSpecs(places: Places, stack: BrokersOptions): Promise<ProcessSpec>[] {
  const { java, options, security, port } = stack;
  const { kafkaFrontPort: advertisedPort } = options;
  const front = advertisedPort === undefined ? null : { port: port('kafka-front'), advertisedPort };
  const names = brokersOf(options);
  return names.map((name, index) => {
    const ports = {
      kafka: port(name),
      controller: port('controller'),
      front: index === 0 ? front : null,
      secured: security === null ? null : port('kafka-secured'),
    };
    return kafkaSpec(places, { java, ports, member: { id: index + 1, of: names.length }, security });
  });
}
