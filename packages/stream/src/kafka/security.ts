import { isIP } from 'node:net';
import type { KafkaSecurity } from '@playline/runtime';
import type { KafkaConfig } from 'kafkajs';
import type { ConnectionOptions as ClientOptions } from './broker-client.ts';

/** How every client of a service connects to the brokers. */
export interface BrokerTarget {
  readonly brokers: readonly string[];
  /** Default: no TLS and no login. */
  readonly security?: KafkaSecurity;
  /** Called with every connection fault; the client reconnects by itself. */
  readonly onFault?: (fault: unknown) => void;
}

/** Options for kafkajs, which modifies them: each client needs its own copy. */
export function toKafkajsSecurity(security: KafkaSecurity = {}): Pick<KafkaConfig, 'ssl' | 'sasl'> {
  const { tls, sasl } = security;
  const { mechanism, username, password } = sasl ?? {};
  const names = { PLAIN: 'plain', 'SCRAM-SHA-256': 'scram-sha-256', 'SCRAM-SHA-512': 'scram-sha-512' } as const;
  return {
    ...(tls === undefined ? {} : { ssl: { ...tls } }),
    ...(mechanism === undefined ? {} : { sasl: { mechanism: names[mechanism], username, password } as never }),
  };
}

/** Options for @platformatic/kafka. */
export function toPlatformaticSecurity(
  options: Omit<BrokerTarget, 'onFault'>,
): Pick<ClientOptions, 'tls' | 'tlsServerName' | 'sasl'> {
  const { tls, sasl } = options.security ?? {};
  const { servername, ...trust } = tls ?? {};
  // TLS sends no server name for an IP address, and then checks the address in the certificate.
  const isNamed = options.brokers.every((broker) => isIP(broker.slice(0, broker.lastIndexOf(':'))) === 0);
  return {
    ...(tls === undefined ? {} : { tls: trust, tlsServerName: servername ?? isNamed }),
    ...(sasl === undefined ? {} : { sasl: { ...sasl } }),
  };
}
