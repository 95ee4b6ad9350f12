import type { Logger, Metrics } from '@playline/runtime';

/** What every consumer of a group is told. */
export interface GroupOptions {
  brokers: readonly string[];
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
