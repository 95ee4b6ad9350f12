import { isIP } from 'node:net';
import type { ConnectionOptions as ClientOptions } from '@platformatic/kafka';
import type { KafkaSecurity } from '@playline/runtime';
import type { KafkaConfig } from 'kafkajs';

/** What kafkajs calls them; each client gets an object of its own, since kafkajs writes into it. */
export function toKafkajsSecurity(security: KafkaSecurity = {}): Pick<KafkaConfig, 'ssl' | 'sasl'> {
  const { tls, sasl } = security;
  const { mechanism, username, password } = sasl ?? {};
  const names = { PLAIN: 'plain', 'SCRAM-SHA-256': 'scram-sha-256', 'SCRAM-SHA-512': 'scram-sha-512' } as const;
  return {
    ...(tls === undefined ? {} : { ssl: { ...tls } }),
    ...(mechanism === undefined ? {} : { sasl: { mechanism: names[mechanism], username, password } as never }),
  };
}

/** What @platformatic/kafka calls them. */
export function toPlatformaticSecurity(options: {
  readonly brokers: readonly string[];
  readonly security?: KafkaSecurity;
}): Pick<ClientOptions, 'tls' | 'tlsServerName' | 'sasl'> {
  const { tls, sasl } = options.security ?? {};
  const { servername, ...trust } = tls ?? {};
  // Brokers that are reached by address are told of by address: TLS names no host then, and checks the address itself.
  const isNamed = options.brokers.every((broker) => isIP(broker.slice(0, broker.lastIndexOf(':'))) === 0);
  return {
    ...(tls === undefined ? {} : { tls: trust, tlsServerName: servername ?? isNamed }),
    ...(sasl === undefined ? {} : { sasl: { ...sasl } }),
  };
}
