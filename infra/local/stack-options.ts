import { brokerName } from './kafka.ts';
import type { Death, Silence } from './keeper.ts';
import type { StackPaths } from './paths.ts';
import { portNamesOf, type ServiceEntry, type ServiceName } from './services.ts';
import type { StackAddresses, StackFile } from './stack-file.ts';

export interface StackOptions {
  /** Folder with data, logs and records. */
  directory?: string;
  /** Default: all. Empty: only the four stores, without topics, tables or keys. */
  services?: readonly ServiceName[];
  /** Further settings for the services, by environment variable. */
  settings?: Record<string, string>;
  report?: (line: string) => void;
  /** Called for each process that has ended and will be restarted. */
  onDeath?: (death: Death) => void;
  /** Called once for each process that has not served for a minute. */
  onSilence?: (silence: Silence) => void;
  /** True keeps everything running when a service does not become ready. */
  staysUp?: boolean;
  /** Opens a second Kafka listener that advertises this port on loopback, for a proxy of tests. */
  kafkaFrontPort?: number;
  /** True for stores with TLS and logins. Default: false. */
  security?: boolean;
  /** True to start a chain, with the demo contracts if there are services. Default: false. */
  chain?: boolean;
  /** Default: the program from npm. */
  chainProgram?: string;
  /** Default: one. */
  kafkaBrokers?: number;
  /** How late timers may fire, so that processes wake together. Default: that of the system, 0.05 ms. */
  timerSlackMs?: { stores: number; services: number };
  /** Called when ClickHouse is ready, while other stores start. */
  fillClickHouse?: (clickhouse: StackFile['clickhouse']) => Promise<void>;
  /** True kills the stores at the end, unless one writes a class archive, because their data is removed. */
  isThrownAway?: boolean;
  /** Aborts a start in progress. */
  signal?: AbortSignal;
}

export interface Stack {
  readonly paths: StackPaths;
  /** Current addresses, keys and process ids. */
  readonly file: StackFile;
  /** Addresses without TLS, also in a stack with TLS. */
  readonly inside: StackAddresses;
  /** Port of Kafka's second listener; null without `kafkaFrontPort`. */
  readonly kafkaFront: number | null;
  /** A sentence with advice for each part that does not serve. */
  readonly missing: readonly string[];
  /** Stops the services, then the stores. A second call waits for the first. */
  stop(): Promise<void>;
}

const STORE_PORTS = ['kafka', 'controller', 'registry', 'redis', 'clickhouse'] as const;
/** Ports for clients in a stack with TLS. */
const SECURED_PORTS = ['kafka-secured', 'registry-secured', 'redis-secured', 'clickhouse-secured'] as const;

/** Names of a stack's brokers. */
export const brokersOf = ({ kafkaBrokers = 1 }: StackOptions): string[] =>
  Array.from({ length: kafkaBrokers }, (_, index) => brokerName(index + 1));

/** Names of all ports that a stack listens on. @throws RangeError for options that exclude each other */
export function portNamesFor(options: StackOptions, services: readonly ServiceEntry[]): string[] {
  const front = options.kafkaFrontPort === undefined ? [] : ['kafka-front'];
  if (options.security === true && options.kafkaBrokers !== undefined && options.kafkaBrokers > 1)
    throw new RangeError('security: the listener with TLS is made for one broker');
  const chain = options.chain === true ? ['chain'] : [];
  const secured = options.security === true ? SECURED_PORTS : [];
  return [...STORE_PORTS, ...secured, ...brokersOf(options).slice(1), ...front, ...chain, ...portNamesOf(services)];
}
