/**
 * How long a fetch waits for a record, and how one that waits is ended.
 *
 * A broker answers as soon as there is a record, however long the fetch may wait. But a member that works needs its next
 * fetch soon: what it resumes, or goes back to, is asked for with that one. A member at rest resumes nothing, and each
 * empty answer costs it and the broker as much as a record. So its fetches last until the next heartbeat is due, and
 * after ten seconds for three, and the heartbeat, which shares their loop, comes as seldom. A rebalance then
 * waits for it so long: three seconds are what clients of Kafka take by themselves.
 */
import type { Cluster } from 'kafkajs';
import type { FetchedBatch } from './kafkajs-overrides.ts';

/** With every partition paused the fetch loop, and so the heartbeat, sleeps this long. */
export const BUSY_WAIT_MS = 150;
/** Nothing came and nothing was paused for so long: at rest. */
const AT_REST_AFTER_MS = 2_000;
/** And at rest for so long: the next record is not expected soon, and a rebalance hurts nobody. */
const ASLEEP_AFTER_MS = 10_000;
/** How long a fetch waits then, and at most this part of the session, so that three heartbeats fit in it. */
const ASLEEP_WAIT_MS = 3_000;
const ASLEEP_SESSION_PART = 0.3;
/** A fetch that lasts until the heartbeat comes back when it is due, and not just before. */
const BEHIND_HEARTBEAT_MS = 20;
/** Of kafkajs's two connections to each broker, the one for fetches. */
const FETCH_CONNECTION = 1;

interface FetchConnection {
  readonly socket: NodeJS.EventEmitter | undefined;
  rejectRequests(fault: Error): void;
}

/** What is used of kafkajs's cluster and missing in its types. */
interface FullCluster {
  readonly brokerPool: {
    readonly brokers: Readonly<Record<string, { connectionPool: { pool: readonly FetchConnection[] } }>>;
  };
}

/** The member stops: nobody wants what this fetch would bring. */
export class FetchOver extends Error {
  override readonly name = 'FetchOver';
}

/** The fetches of one member. */
export class FetchPace {
  readonly #asleepWaitMs: number;
  #workedAtMs = Number.NEGATIVE_INFINITY;
  #joinedAtMs = performance.now();
  readonly #waiting = new Set<() => void>();

  constructor({ sessionTimeoutMs }: { sessionTimeoutMs: number }) {
    this.#asleepWaitMs = Math.min(ASLEEP_WAIT_MS, sessionTimeoutMs * ASLEEP_SESSION_PART);
  }

  /** Told of each rebalance: another one often follows. */
  joined(): void {
    this.#joinedAtMs = performance.now();
  }

  /** Told of what each fetch has brought. */
  fetched(batches: readonly FetchedBatch[]): void {
    if (batches.some(({ rawMessages }) => (rawMessages.batches?.length ?? 0) > 0)) this.#workedAtMs = performance.now();
  }

  /** How long the next fetch may wait, in milliseconds. */
  waitMs({ hasPaused, heartbeatInMs }: { hasPaused: boolean; heartbeatInMs: number }): number {
    const nowMs = performance.now();
    if (hasPaused) this.#workedAtMs = nowMs;
    if (nowMs - this.#workedAtMs < AT_REST_AFTER_MS) return BUSY_WAIT_MS;
    const untilHeartbeatMs = Math.ceil(heartbeatInMs) + BEHIND_HEARTBEAT_MS;
    const isAsleep = nowMs - Math.max(this.#workedAtMs, this.#joinedAtMs) >= ASLEEP_AFTER_MS;
    return Math.max(BUSY_WAIT_MS, untilHeartbeatMs, isAsleep ? Math.floor(this.#asleepWaitMs) : 0);
  }

  /** What the fetch brings, or nothing when all are ended first. */
  async until(fetching: Promise<FetchedBatch[]>): Promise<FetchedBatch[]> {
    const over = Promise.withResolvers<FetchedBatch[]>();
    const end = () => over.resolve([]);
    this.#waiting.add(end);
    try {
      return await Promise.race([fetching, over.promise]);
    } finally {
      this.#waiting.delete(end);
    }
  }

  /**
   * Ends every fetch that waits, once kafkajs has been told to stop and begins no other: it would wait for them, and
   * so would its connections. What still comes on those goes unread, and they are closed next.
   */
  endAll(given: Cluster): void {
    for (const end of this.#waiting) end();
    const { brokers } = (given as unknown as FullCluster).brokerPool;
    for (const { connectionPool } of Object.values(brokers)) {
      const connection = connectionPool.pool[FETCH_CONNECTION]!;
      connection.socket?.removeAllListeners('data');
      connection.rejectRequests(new FetchOver('the member stops'));
    }
  }
}
