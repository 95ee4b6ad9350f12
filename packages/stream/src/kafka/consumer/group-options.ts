import type { KafkaSecurity, Logger, Metrics } from '@playline/runtime';

/** What every consumer of a group is told. */
export interface GroupOptions {
  brokers: readonly string[];
  /** TLS and login; the connections are in the clear and nobody logs in without it. */
  security?: KafkaSecurity;
  /** Told of every fault of a connection; it is made again by itself. */
  onFault?: (fault: unknown) => void;
  groupId: string;
  /** As they are called on the broker. */
  topics: readonly string[];
  /** A member that is silent for this long loses its partitions; half of it is the time a drain may take. */
  sessionTimeoutMs: number;
  /** Default: the group's id. */
  clientId?: string;
  logger?: Logger;
  metrics?: Metrics;
}
