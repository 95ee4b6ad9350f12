import type { StackAddresses } from './addresses.ts';
import type { Death, Silence } from './keeper.ts';
import type { Places } from './places.ts';
import type { ServiceName } from './services.ts';
import type { StackFile } from './stack-file.ts';

export interface StackOptions {
  /** The stack's own folder: its data, logs and records. Two stacks never share one. */
  directory?: string;
  /** All of them unless named; with none of them the stack is the four stores, without topics, tables or keys. */
  services?: readonly ServiceName[];
  /** Further settings for the services, by the names they have in the environment. */
  settings?: Record<string, string>;
  /** Called with progress, in words for people. */
  say?: (line: string) => void;
  /** Called for each process that exited by itself and is about to be started again. */
  onDeath?: (death: Death) => void;
  /** Called once for each process that runs and has not served for a minute; `say` reports when it serves again. */
  onSilence?: (silence: Silence) => void;
  /** A service that lives and does not serve fails the start, unless this is true: what can stand then stays up. */
  staysUp?: boolean;
  /**
   * Opens a second listener of Kafka whose clients are told to go to this port of loopback: whoever listens there
   * stands between them and the broker, as tests that cut the two off from each other do.
   */
  kafkaFrontPort?: number;
  /** Stores that want TLS, by an authority of the stack's own, and a login, as managed ones do; in the clear otherwise. */
  security?: boolean;
  /** Starts a chain of the stack's own as well, with the demo contracts where there are services; none unless it is true. */
  chain?: boolean;
  /** Program of the chain's node; the one that npm has installed unless it is named. */
  chainProgram?: string;
  /** Brokers of Kafka, for tests of what happens among several; one unless it says otherwise. */
  kafkaBrokers?: number;
  /** Ends a start that is under way. */
  signal?: AbortSignal;
}

export interface Stack {
  readonly places: Places;
  /** Addresses, keys and process ids as they are now. */
  readonly file: StackFile;
  /** Addresses of the stores without TLS, also in a stack that has it: for what is measured or changed beside it. */
  readonly inside: StackAddresses;
  /** Port of Kafka's second listener; null without `kafkaFrontPort`. */
  readonly kafkaFront: number | null;
  /** What does not serve although the start is over, a sentence each with what to do; empty when all serve. */
  readonly missing: readonly string[];
  /** Drains and stops the services, then the stores; a second call waits for the first. */
  stop(): Promise<void>;
}
