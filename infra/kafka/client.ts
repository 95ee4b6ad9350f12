import { isIP } from 'node:net';
import type { BaseOptions } from '@platformatic/kafka';
import type { KafkaSecurity } from '@playline/runtime';
import type { KafkaConfig } from 'kafkajs';

/** Broker options for every client of these commands. */
export function toClient(options: {
  brokers: readonly string[];
  security?: KafkaSecurity | undefined;
}): Pick<KafkaConfig, 'brokers' | 'ssl' | 'sasl'> {
  const { tls, sasl } = options.security ?? {};
  const login = sasl === undefined ? null : { ...sasl, mechanism: sasl.mechanism.toLowerCase() };
  return {
    brokers: [...options.brokers],
    ...(tls === undefined ? {} : { ssl: { ...tls } }),
    ...(login === null ? {} : { sasl: login as NonNullable<KafkaConfig['sasl']> }),
  };
}

/** The same options for the client that alters single settings. */
export function toAlteringClient(options: {
  brokers: readonly string[];
  security?: KafkaSecurity | undefined;
}): Pick<BaseOptions, 'bootstrapBrokers' | 'tls' | 'tlsServerName' | 'sasl'> {
  const { tls, sasl } = options.security ?? {};
  const { servername, ...trust } = tls ?? {};
  // For brokers with IP addresses TLS sends no host name, and checks the address itself.
  const isNamed = options.brokers.every((broker) => isIP(broker.slice(0, broker.lastIndexOf(':'))) === 0);
  return {
    bootstrapBrokers: [...options.brokers],
    ...(tls === undefined ? {} : { tls: trust, tlsServerName: servername ?? isNamed }),
    ...(sasl === undefined ? {} : { sasl: { ...sasl } }),
  };
}
