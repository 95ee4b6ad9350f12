import { isIP } from 'node:net';
import type { BaseOptions } from '@platformatic/kafka';
import type { KafkaSecurity } from '@playline/runtime';
import kafkajs, { type Admin, type KafkaConfig } from 'kafkajs';
import { mendKafkaTimer } from './timer.ts';

/** Broker options of kafkajs. */
function toClient(options: {
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

/** Connects to the brokers for the time of `work`. @throws Error of the broker, or what `work` throws */
export async function withAdmin<T>(
  options: { brokers: readonly string[]; security?: KafkaSecurity | undefined },
  work: (admin: Admin) => Promise<T>,
): Promise<T> {
  // Otherwise kafkajs warns at every start that its partitioner has changed.
  process.env.KAFKAJS_NO_PARTITIONER_WARNING = '1';
  mendKafkaTimer();
  // kafkajs is CommonJS: Node finds its names only on the default export.
  const { Kafka, logLevel } = kafkajs;
  const kafka = new Kafka({ clientId: 'playline-topics', ...toClient(options), logLevel: logLevel.NOTHING });
  const admin = kafka.admin();
  await admin.connect();
  try {
    return await work(admin);
  } finally {
    await admin.disconnect();
  }
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
