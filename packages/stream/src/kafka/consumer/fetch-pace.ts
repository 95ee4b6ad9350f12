/**
 * Decides how long a fetch waits for records. Active members need short fetches, because a resumed partition is only
 * included in the next fetch. Idle members wait until the next heartbeat, and after four idle seconds for up to three
 * seconds, which is also how long they delay a rebalance.
 */
import type { Cluster } from 'kafkajs';
import type { FetchedBatch } from './kafkajs-overrides.ts';

/** How long the fetch loop and the heartbeat sleep while all partitions are paused. */
export const BUSY_WAIT_MS = 150;
const IDLE_AFTER_MS = 500;
const LONG_IDLE_AFTER_MS = 4_000;
const LONG_IDLE_AFTER_JOIN_MS = 10_000;
/** Limited to a fraction of the session timeout, so that three heartbeats are sent before it expires. */
const LONG_IDLE_WAIT_MS = 3_000;
const LONG_IDLE_SESSION_RATIO = 0.3;
const HEARTBEAT_MARGIN_MS = 20;
/** Index of the kafkajs connection that fetches from a broker. */
const FETCH_CONNECTION = 1;

interface FetchConnection {
  readonly socket: NodeJS.EventEmitter | undefined;
  rejectRequests(fault: Error): void;
}

/** Members of the kafkajs cluster that the kafkajs types omit. */
interface FullCluster {
  readonly brokerPool: {
    readonly brokers: Readonly<Record<string, { connectionPool: { pool: readonly FetchConnection[] } }>>;
  };
}

/** The member is stopping, so the response to this fetch is not needed. */
export class FetchCancelled extends Error {
  override readonly name = 'FetchCancelled';
}

export class FetchPace {
  readonly #longIdleWaitMs: number;
  #workedAtMs = Number.NEGATIVE_INFINITY;
  #joinedAtMs = performance.now();
  readonly #waiting = new Set<() => void>();

  constructor({ sessionTimeoutMs }: { sessionTimeoutMs: number }) {
    this.#longIdleWaitMs = Math.min(LONG_IDLE_WAIT_MS, sessionTimeoutMs * LONG_IDLE_SESSION_RATIO);
  }

  joined(): void {
    this.#joinedAtMs = performance.now();
  }

  fetched(batches: readonly FetchedBatch[]): void {
    if (batches.some(({ rawMessages }) => (rawMessages.batches?.length ?? 0) > 0)) this.#workedAtMs = performance.now();
  }

  waitMs({ hasPaused, heartbeatInMs }: { hasPaused: boolean; heartbeatInMs: number }): number {
    const nowMs = performance.now();
    if (hasPaused) this.#workedAtMs = nowMs;
    if (nowMs - this.#workedAtMs < IDLE_AFTER_MS) return BUSY_WAIT_MS;
    const untilHeartbeatMs = Math.ceil(heartbeatInMs) + HEARTBEAT_MARGIN_MS;
    const isLongIdle =
      nowMs - this.#workedAtMs >= LONG_IDLE_AFTER_MS && nowMs - this.#joinedAtMs >= LONG_IDLE_AFTER_JOIN_MS;
    return Math.max(BUSY_WAIT_MS, untilHeartbeatMs, isLongIdle ? Math.floor(this.#longIdleWaitMs) : 0);
  }

  /** Resolves with the fetched batches, or with an empty list if `endAll` is called first. */
  async awaitFetch(fetching: Promise<FetchedBatch[]>): Promise<FetchedBatch[]> {
    const ended = Promise.withResolvers<FetchedBatch[]>();
    const end = () => ended.resolve([]);
    this.#waiting.add(end);
    try {
      return await Promise.race([fetching, ended.promise]);
    } finally {
      this.#waiting.delete(end);
    }
  }

  /**
   * Ends waiting fetches when kafkajs is stopping, because kafkajs would wait for them. Their responses are ignored.
   */
  endAll(cluster: Cluster): void {
    for (const end of this.#waiting) end();
    const { brokers } = (cluster as unknown as FullCluster).brokerPool;
    for (const { connectionPool } of Object.values(brokers)) {
      const connection = connectionPool.pool[FETCH_CONNECTION]!;
      connection.socket?.removeAllListeners('data');
      connection.rejectRequests(new FetchCancelled('the member is stopping'));
    }
  }
}
