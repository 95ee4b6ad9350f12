import type { ProcessExit, Silence } from './keeper.ts';
import { nodeNames } from './node-names.ts';
import type { StackPaths } from './paths.ts';
import { REDIS_CLUSTER_NODES } from './redis-cluster.ts';
import { portNamesOf, type ServiceEntry, type ServiceName, servicesFor } from './services.ts';
import type { StackAddresses, StackFile } from './stack-file.ts';

export interface StackOptions {
  /** Folder for data, logs and process records. */
  directory?: string;
  /** Services to start. Default: all. An empty list starts only the four stores, without topics, tables or keys. */
  services?: readonly ServiceName[];
  /** True to create topics and tables even without services. */
  createsTables?: boolean;
  /** Additional environment variables for the services and for creating topics. */
  settings?: Record<string, string>;
  report?: (line: string) => void;
  /** Called for each process that has exited and will be restarted. */
  onExit?: (exit: ProcessExit) => void;
  /** Called once for each process that has not been ready for a minute. */
  onSilence?: (silence: Silence) => void;
  /** True to keep the stack running if a service does not become ready. */
  isLenient?: boolean;
  /** Port that a second Kafka listener advertises on loopback, for a test proxy. */
  kafkaFrontPort?: number;
  /** True for stores with TLS and logins. Default: false. */
  security?: boolean;
  /** True to start a chain, with the demo contracts if there are services. Default: false. */
  chain?: boolean;
  /** Path of anvil. Default: the program from npm. */
  chainProgram?: string;
  /** True for several nodes of each store and two processes of each service. Default: false. */
  cluster?: boolean;
  /** Number of Kafka brokers. Default: 3 in a cluster, otherwise 1. */
  kafkaBrokers?: number;
  /** How late timers may fire, so that processes wake together. Default: the system's 0.05 ms. */
  timerSlackMs?: { stores: number; services: number };
  /** Called when ClickHouse is ready, while other stores are starting. */
  fillClickHouse?: (clickhouse: StackFile['clickhouse']) => Promise<void>;
  /** True to kill stores at the end, because their data is deleted. Stores that write a class archive are stopped. */
  isDisposable?: boolean;
  /** Aborts a start in progress. */
  signal?: AbortSignal;
}

export interface Stack {
  readonly paths: StackPaths;
  /** Current addresses, keys and process ids. */
  readonly file: StackFile;
  /** Addresses without TLS, available in every stack. */
  readonly plaintext: StackAddresses;
  /** Port of Kafka's second listener, or null without `kafkaFrontPort`. */
  readonly kafkaFront: number | null;
  /** A sentence with advice for each component that is not running. */
  readonly missing: readonly string[];
  /** Stops the services, then the stores. A second call waits for the first call. */
  stop(): Promise<void>;
}

/** Client ports in a stack with TLS. */
const SECURED_PORTS = ['kafka-secured', 'registry-secured', 'redis-secured', 'clickhouse-secured'] as const;

export type NodeCounts = Readonly<Record<'kafka' | 'redis' | 'clickhouse', number>>;

/**
 * Returns the number of nodes of each store. With three brokers, records are stored while one broker is down. Three of
 * the Redis nodes are replicas. Each ClickHouse node has a part of the rows.
 */
export const nodeCountsOf = ({ cluster = false, kafkaBrokers = cluster ? 3 : 1 }: StackOptions): NodeCounts => ({
  kafka: kafkaBrokers,
  redis: cluster ? REDIS_CLUSTER_NODES : 1,
  clickhouse: cluster ? 2 : 1,
});

/** Returns the settings for creating topics: in a cluster, a broker that is not running must fail the start. */
export const topicSettingsOf = (options: StackOptions): Record<string, string> =>
  nodeCountsOf(options).kafka < 3 ? {} : { TOPIC_REPLICATION_FACTOR: '3', TOPIC_MIN_INSYNC_REPLICAS: '2' };

/** Returns the names of all ports of a stack. @throws RangeError for conflicting options */
export function portNamesFor(options: StackOptions, services: readonly ServiceEntry[]): string[] {
  const front = options.kafkaFrontPort === undefined ? [] : ['kafka-front'];
  const { kafka: brokers, redis, clickhouse } = nodeCountsOf(options);
  if (options.security === true && brokers > 1)
    throw new RangeError('security: TLS is supported for one broker only. Omit cluster and kafkaBrokers');
  const kafka = ['kafka', 'controller'].flatMap((name) => nodeNames(name, brokers));
  const stores = ['registry', ...nodeNames('redis', redis), ...nodeNames('clickhouse', clickhouse)];
  const between =
    options.cluster === true ? [...nodeNames('redis-bus', redis), ...nodeNames('clickhouse-native', clickhouse)] : [];
  const chain = options.chain === true ? ['chain'] : [];
  const secured = options.security === true ? SECURED_PORTS : [];
  return [...kafka, ...stores, ...between, ...secured, ...front, ...chain, ...portNamesOf(services)];
}

/** Returns the names of all ports of a stack with all services and the chain. */
export const allPortNames = ({ cluster }: Pick<StackOptions, 'cluster'>): string[] =>
  portNamesFor({ chain: true, cluster }, servicesFor({ chain: true, cluster }));
