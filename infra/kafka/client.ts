import type { KafkaSecurity } from '@playline/runtime';
import type { KafkaConfig } from 'kafkajs';

/** What every client of these commands is told of the brokers. */
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
