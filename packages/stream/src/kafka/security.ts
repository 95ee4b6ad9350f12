import { isIP } from 'node:net';
import type { KafkaSecurity } from '@playline/runtime';
import type { KafkaConfig } from 'kafkajs';
import type { ConnectionOptions as ClientOptions } from './broker-client.ts';

/** Where the brokers are, and how every client of a service connects to them. */
export interface BrokerTarget {
  readonly brokers: readonly string[];
  /** TLS and login. Without it, connections are unencrypted and without login. */
  readonly security?: KafkaSecurity;
  /** Called with every fault of a connection; the client reconnects by itself. */
  readonly onFault?: (fault: unknown) => void;
}

/** Options of kafkajs. Each client needs its own object, because kafkajs writes into it. */
export function toKafkajsSecurity(security: KafkaSecurity = {}): Pick<KafkaConfig, 'ssl' | 'sasl'> {
  const { tls, sasl } = security;
  const { mechanism, username, password } = sasl ?? {};
  const names = { PLAIN: 'plain', 'SCRAM-SHA-256': 'scram-sha-256', 'SCRAM-SHA-512': 'scram-sha-512' } as const;
  return {
    ...(tls === undefined ? {} : { ssl: { ...tls } }),
    ...(mechanism === undefined ? {} : { sasl: { mechanism: names[mechanism], username, password } as never }),
  };
}

/** Options of @platformatic/kafka. */
export function toPlatformaticSecurity(
  options: Omit<BrokerTarget, 'onFault'>,
): Pick<ClientOptions, 'tls' | 'tlsServerName' | 'sasl'> {
  const { tls, sasl } = options.security ?? {};
  const { servername, ...trust } = tls ?? {};
  // If brokers are given by IP address, TLS sends no host name and checks the address in the certificate.
  const isNamed = options.brokers.every((broker) => isIP(broker.slice(0, broker.lastIndexOf(':'))) === 0);
  return {
    ...(tls === undefined ? {} : { tls: trust, tlsServerName: servername ?? isNamed }),
    ...(sasl === undefined ? {} : { sasl: { ...sasl } }),
  };
}
