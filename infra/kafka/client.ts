import { isIP } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { BaseOptions } from '@platformatic/kafka';
import type { KafkaSecurity } from '@playline/runtime';
import type { Admin, ITopicMetadata, KafkaConfig } from 'kafkajs';
import kafkajs from 'kafkajs';
import { patchKafkaTimer } from './timer.ts';

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
  patchKafkaTimer();
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

/** Longer than a loaded broker takes to lead a few dozen new partitions. */
const LEADERS_MAX_MS = 30_000;
const LEADERS_POLL_MS = 100;

/**
 * Asks for the partitions of topics.
 * @throws a temporary Error while a topic is unknown or has a partition without a leader: no broker's answer passes then
 */
export async function readMetadata(
  admin: Pick<Admin, 'fetchTopicMetadata'>,
  topics: readonly string[],
): Promise<readonly ITopicMetadata[]> {
  try {
    return (await admin.fetchTopicMetadata({ topics: [...topics] })).topics;
  } catch (fault) {
    // kafkajs skips the brokers whose answer names a fault, and then reads the answer of none.
    if (!(fault instanceof TypeError)) throw fault;
    const words = `a topic is not there, or a partition of it has no leader: ${topics.join(', ')}`;
    throw Object.assign(new Error(words, { cause: fault }), { retriable: true });
  }
}

/**
 * Waits until every partition of the topics has a leader.
 * @param topics `partitions`: how many must be there; without it, those that are
 * @returns the topics as the brokers know them
 * @throws the last fault, or one that names the topics
 */
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
    const fault = new Error(`partitions are not there, or have no leader, after ${LEADERS_MAX_MS / 1000} s: ${names}`);
    throw Object.assign(fault, { retriable: true });
  });
}

/**
 * Asks again while a fault is temporary: a broker does not know a topic yet, or does not lead its partitions yet. The
 * controller names a leader before that broker knows it. Until then the broker refuses requests for the partition, and
 * the client gives up at the first refusal.
 * @throws permanent faults at once; temporary ones after half a minute
 */
export async function retryTemporary<T>(ask: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + LEADERS_MAX_MS;
  for (;;) {
    try {
      return await ask();
    } catch (fault) {
      if (!isPassing(fault) || performance.now() >= deadline) throw fault;
    }
    await delay(LEADERS_POLL_MS);
  }
}

/**
 * Whether asking again may help. What kafkajs has asked for several times itself is permanent by its own mark, and
 * temporary by its cause.
 */
function isPassing(fault: unknown): boolean {
  if (!(fault instanceof Error)) return false;
  return (fault as { retriable?: boolean }).retriable === true || isPassing(fault.cause);
}
