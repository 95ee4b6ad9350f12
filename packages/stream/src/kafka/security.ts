import { isIP } from 'node:net';
import type { KafkaSecurity } from '@playline/runtime';
import type { KafkaConfig } from 'kafkajs';
import type { ConnectionOptions as ClientOptions } from './broker-client.ts';

/** How all of a service's clients connect to the brokers. */
export interface BrokerTarget {
  readonly brokers: readonly string[];
  /** Without security options, connections use neither TLS nor a login. */
  readonly security?: KafkaSecurity;
  /** Called with every connection fault. The client reconnects automatically. */
  readonly onFault?: (fault: unknown) => void;
}

/** Creates options for kafkajs. Every client needs its own copy, because kafkajs modifies the options. */
export function toKafkajsSecurity(security: KafkaSecurity = {}): Pick<KafkaConfig, 'ssl' | 'sasl'> {
  const { tls, sasl } = security;
  const { mechanism, username, password } = sasl ?? {};
  const names = { PLAIN: 'plain', 'SCRAM-SHA-256': 'scram-sha-256', 'SCRAM-SHA-512': 'scram-sha-512' } as const;
  return {
    ...(tls === undefined ? {} : { ssl: { ...tls } }),
    ...(mechanism === undefined ? {} : { sasl: { mechanism: names[mechanism], username, password } as never }),
  };
}

/** Creates options for @platformatic/kafka. */
export function toPlatformaticSecurity(
  options: Omit<BrokerTarget, 'onFault'>,
): Pick<ClientOptions, 'tls' | 'tlsServerName' | 'sasl'> {
  const { tls, sasl } = options.security ?? {};
  const { servername, ...trust } = tls ?? {};
  // For an IP address, TLS sends no server name, and then verifies the address in the certificate.
  const isNamed = options.brokers.every((broker) => isIP(broker.slice(0, broker.lastIndexOf(':'))) === 0);
  return {
    ...(tls === undefined ? {} : { tls: trust, tlsServerName: servername ?? isNamed }),
    ...(sasl === undefined ? {} : { sasl: { ...sasl } }),
  };
}
