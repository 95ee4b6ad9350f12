// Kafka clients of the deployment, and retries of their requests.
import { isIP } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { BaseOptions } from '@platformatic/kafka';
import type { KafkaSecurity } from '@playline/runtime';
import type { Admin, ITopicMetadata, KafkaConfig } from 'kafkajs';
import kafkajs from 'kafkajs';
import { patchKafkaTimer } from './timer.ts';

type Connection = { brokers: readonly string[]; security?: KafkaSecurity | undefined };

function toClient(options: Connection): Pick<KafkaConfig, 'brokers' | 'ssl' | 'sasl'> {
  const { tls, sasl } = options.security ?? {};
  const login = sasl === undefined ? null : { ...sasl, mechanism: sasl.mechanism.toLowerCase() };
  return {
    brokers: [...options.brokers],
    ...(tls === undefined ? {} : { ssl: { ...tls } }),
    ...(login === null ? {} : { sasl: login as NonNullable<KafkaConfig['sasl']> }),
  };
}

export async function withAdmin<T>(options: Connection, work: (admin: Admin) => Promise<T>): Promise<T> {
  // Otherwise kafkajs warns that its partitioner has changed.
  process.env.KAFKAJS_NO_PARTITIONER_WARNING = '1';
  patchKafkaTimer();
  // kafkajs is CommonJS: Node finds its names only in the default export.
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

/** Options of the client that alters single settings. */
export function toAlteringClient(
  options: Connection,
): Pick<BaseOptions, 'bootstrapBrokers' | 'tls' | 'tlsServerName' | 'sasl'> {
  const { tls, sasl } = options.security ?? {};
  const { servername, ...trust } = tls ?? {};
  // For IP addresses TLS sends no host name, and checks the address.
  const isNamed = options.brokers.every((broker) => isIP(broker.slice(0, broker.lastIndexOf(':'))) === 0);
  return {
    bootstrapBrokers: [...options.brokers],
    ...(tls === undefined ? {} : { tls: trust, tlsServerName: servername ?? isNamed }),
    ...(sasl === undefined ? {} : { sasl: { ...sasl } }),
  };
}

const LEADERS_MAX_MS = 30_000;
const LEADERS_POLL_MS = 100;

/** @throws a temporary Error while a topic is unknown or a partition has no leader */
export async function readMetadata(
  admin: Pick<Admin, 'fetchTopicMetadata'>,
  topics: readonly string[],
): Promise<readonly ITopicMetadata[]> {
  try {
    return (await admin.fetchTopicMetadata({ topics: [...topics] })).topics;
  } catch (fault) {
    // kafkajs skips brokers whose response has an error, and then reads the response of none.
    if (!(fault instanceof TypeError)) throw fault;
    const message = `a topic does not exist, or one of its partitions has no leader: ${topics.join(', ')}`;
    throw Object.assign(new Error(message, { cause: fault }), { retriable: true });
  }
}

/** Waits until every partition has a leader. @param topics `partitions`: the least number of them */
export async function awaitLeaders(
  admin: Pick<Admin, 'fetchTopicMetadata'>,
  topics: readonly { readonly name: string; readonly partitions?: number }[],
): Promise<readonly ITopicMetadata[]> {
  return retryTemporary(async () => {
    const found = await readMetadata(
      admin,
      topics.map(({ name }) => name),
    );
    const waiting = topics.filter(({ name, partitions: wanted = 1 }) => {
      const partitions = found.find((topic) => topic.name === name)?.partitions ?? [];
      return partitions.length < wanted || partitions.some(({ leader }) => leader < 0);
    });
    if (waiting.length === 0) return found;
    const names = waiting.map(({ name }) => name).join(', ');
    const fault = new Error(`partitions are missing or have no leader after ${LEADERS_MAX_MS / 1000} s: ${names}`);
    throw Object.assign(fault, { retriable: true });
  });
}

/**
 * Retries while a broker does not know a topic or does not lead its partitions yet; the client gives up at the first
 * refusal.
 * @throws permanent faults immediately, temporary ones after half a minute
 */
export async function retryTemporary<T>(request: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + LEADERS_MAX_MS;
  for (;;) {
    try {
      return await request();
    } catch (fault) {
      if (!isTemporary(fault) || performance.now() >= deadline) throw fault;
    }
    await delay(LEADERS_POLL_MS);
  }
}

/** A request that kafkajs has retried is marked permanent, and only its cause is temporary. */
function isTemporary(fault: unknown): boolean {
  if (!(fault instanceof Error)) return false;
  return (fault as { retriable?: boolean }).retriable === true || isTemporary(fault.cause);
}
