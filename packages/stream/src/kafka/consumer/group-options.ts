import type { Logger, Metrics } from '@playline/runtime';
import type { BrokerTarget } from '../security.ts';

/** Options of every consumer of a group. */
export interface GroupOptions extends BrokerTarget {
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
