import type { StackAddresses } from './addresses.ts';
import { brokerName } from './kafka.ts';
import type { Death, Silence } from './keeper.ts';
import type { StackPaths } from './paths.ts';
import { portNamesOf, type ServiceEntry, type ServiceName } from './services.ts';
import type { StackFile } from './stack-file.ts';

export interface StackOptions {
  /** The stack's own folder: its data, logs and records. Two stacks never share one. */
  directory?: string;
  /** Default: all. With an empty list the stack has only the four stores, without topics, tables or keys. */
  services?: readonly ServiceName[];
  /** Further settings for the services, by environment variable. */
  settings?: Record<string, string>;
  /** Called with progress messages. */
  report?: (line: string) => void;
  /** Called for each process that has ended by itself and will be restarted. */
  onDeath?: (death: Death) => void;
  /** Called once for each process that has run for a minute without serving. `say` reports when it serves again. */
  onSilence?: (silence: Silence) => void;
  /** When true, a service that runs without serving does not fail the start, and everything else stays up. */
  staysUp?: boolean;
  /**
   * Opens a second listener of Kafka that advertises this port of loopback. A proxy that listens there is between
   * clients and broker, so tests can cut the connection.
   */
  kafkaFrontPort?: number;
  /** True for stores with TLS, by a separate authority, and logins, like managed ones. Default: neither. */
  security?: boolean;
  /** True to start a chain as well, with the demo contracts if there are services. Default: none. */
  chain?: boolean;
  /** Program of the chain's node. Default: the one that npm has installed. */
  chainProgram?: string;
  /** Number of Kafka brokers, for tests of a cluster. Default: one. */
  kafkaBrokers?: number;
  /**
   * How late a timer may fire, so that several processes wake together. For a stack that nobody uses most of the time.
   * Default: as late as the system has it, 0.05 ms.
   */
  timerSlackMs?: { stores: number; services: number };
  /** What ClickHouse gets while the other stores still start. */
  fillClickHouse?: (clickhouse: StackFile['clickhouse']) => Promise<void>;
  /** True when the data is removed with the stack: its stores are then killed, except to write an archive of Java classes. */
  isThrownAway?: boolean;
  /** Aborts a start in progress. */
  signal?: AbortSignal;
}

export interface Stack {
  readonly paths: StackPaths;
  /** Addresses, keys and process ids as they are now. */
  readonly file: StackFile;
  /** Addresses of the stores without TLS, also in a stack with TLS, for tests that measure or change the stores. */
  readonly inside: StackAddresses;
  /** Port of Kafka's second listener; null without `kafkaFrontPort`. */
  readonly kafkaFront: number | null;
  /** One sentence with advice for each part that does not serve after the start; empty when all serve. */
  readonly missing: readonly string[];
  /** Drains and stops the services, then the stores. A second call waits for the first. */
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
