import type { KafkaSecurity, Logger, Metrics } from '@playline/runtime';

/** Options of every consumer of a group. */
export interface GroupOptions {
  brokers: readonly string[];
  /** TLS and login. Without it connections are not encrypted and nobody logs in. */
  security?: KafkaSecurity;
  /** Called with every fault of a connection; the client reconnects by itself. */
  onFault?: (fault: unknown) => void;
  groupId: string;
  /** Names on the broker. */
  topics: readonly string[];
  /**
   * A member that sends nothing for this long loses its partitions. Finishing its work on shutdown may take half of it.
   */
  sessionTimeoutMs: number;
  /** Default: the group's id. */
  clientId?: string;
  logger?: Logger;
  metrics?: Metrics;
}
