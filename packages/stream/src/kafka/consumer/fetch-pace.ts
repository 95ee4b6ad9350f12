/**
 * How long a fetch waits for a record. Active members need short fetches, because a resumed partition is included only
 * in the next fetch. Idle members wait until the next heartbeat; after four idle seconds, three seconds, as in a
 * rebalance.
 */
import type { Cluster } from 'kafkajs';
import type { FetchedBatch } from './kafkajs-overrides.ts';

/** While every partition is paused, the fetch loop and the heartbeat sleep this long. */
export const BUSY_WAIT_MS = 150;
const IDLE_AFTER_MS = 500;
const LONG_IDLE_AFTER_MS = 4_000;
const LONG_IDLE_AFTER_JOIN_MS = 10_000;
/** At most this share of the session timeout, so that three heartbeats fit into it. */
const LONG_IDLE_WAIT_MS = 3_000;
const LONG_IDLE_SESSION_SHARE = 0.3;
const BEHIND_HEARTBEAT_MS = 20;
/** Index of the kafkajs connection that fetches from a broker. */
const FETCH_CONNECTION = 1;

interface FetchConnection {
  readonly socket: NodeJS.EventEmitter | undefined;
  rejectRequests(fault: Error): void;
}

/** Members of the kafkajs cluster that its types lack. */
interface FullCluster {
  readonly brokerPool: {
    readonly brokers: Readonly<Record<string, { connectionPool: { pool: readonly FetchConnection[] } }>>;
  };
}

/** The member stops, so the response to this fetch is not needed. */
export class FetchCancelled extends Error {
  override readonly name = 'FetchCancelled';
}

export class FetchPace {
  readonly #asleepWaitMs: number;
  #workedAtMs = Number.NEGATIVE_INFINITY;
  #joinedAtMs = performance.now();
  readonly #waiting = new Set<() => void>();

  constructor({ sessionTimeoutMs }: { sessionTimeoutMs: number }) {
    this.#asleepWaitMs = Math.min(LONG_IDLE_WAIT_MS, sessionTimeoutMs * LONG_IDLE_SESSION_SHARE);
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
    const untilHeartbeatMs = Math.ceil(heartbeatInMs) + BEHIND_HEARTBEAT_MS;
    const isLongIdle =
      nowMs - this.#workedAtMs >= LONG_IDLE_AFTER_MS && nowMs - this.#joinedAtMs >= LONG_IDLE_AFTER_JOIN_MS;
    return Math.max(BUSY_WAIT_MS, untilHeartbeatMs, isLongIdle ? Math.floor(this.#asleepWaitMs) : 0);
  }

  /** Resolves to the batches of the fetch, or to an empty list when `endAll` is called first. */
  async until(fetching: Promise<FetchedBatch[]>): Promise<FetchedBatch[]> {
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
   * Ends waiting fetches once kafkajs is stopping, because kafkajs would wait for them. Their responses are ignored.
   */
  endAll(given: Cluster): void {
    for (const end of this.#waiting) end();
    const { brokers } = (given as unknown as FullCluster).brokerPool;
    for (const { connectionPool } of Object.values(brokers)) {
      const connection = connectionPool.pool[FETCH_CONNECTION]!;
      connection.socket?.removeAllListeners('data');
      connection.rejectRequests(new FetchCancelled('the member stops'));
    }
  }
}
