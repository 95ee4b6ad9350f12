/**
 * How long a fetch waits for a record, and how one that waits is ended.
 *
 * A broker answers a fetch as soon as there is a record. An active member still needs short fetches: a partition that
 * is resumed or moved is only in the next one. For an idle member each empty answer costs as much as a record. So its
 * fetches wait until the next heartbeat is due, and after four idle seconds for three seconds. The heartbeat runs in the
 * same loop, so it becomes as rare, and a rebalance waits for it: three seconds is the default of Kafka clients.
 */
import type { Cluster } from 'kafkajs';
import type { FetchedBatch } from './kafkajs-overrides.ts';

/** While every partition is paused the fetch loop sleeps this long, and the heartbeat with it. */
export const BUSY_WAIT_MS = 150;
/** A member counts as idle when nothing came and nothing was paused for this long. */
const AT_REST_AFTER_MS = 500;
/** When nothing came for this long, no record is expected soon. */
const ASLEEP_AFTER_MS = 4_000;
/** After a rebalance another one often follows, which a member that is asleep would delay. */
const ASLEEP_AFTER_JOIN_MS = 10_000;
/** A fetch then waits this long, but at most this part of the session, so that three heartbeats fit into it. */
const ASLEEP_WAIT_MS = 3_000;
const ASLEEP_SESSION_PART = 0.3;
/** A fetch that waits until the heartbeat should return when the heartbeat is due, and not just before. */
const BEHIND_HEARTBEAT_MS = 20;
/** kafkajs has two connections to each broker; this is the index of the one for fetches. */
const FETCH_CONNECTION = 1;

interface FetchConnection {
  readonly socket: NodeJS.EventEmitter | undefined;
  rejectRequests(fault: Error): void;
}

/** Members of kafkajs's cluster that its types lack. */
interface FullCluster {
  readonly brokerPool: {
    readonly brokers: Readonly<Record<string, { connectionPool: { pool: readonly FetchConnection[] } }>>;
  };
}

/** The member stops, so the answer of this fetch is not needed any more. */
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

  /** Called at each rebalance: another one often follows. */
  joined(): void {
    this.#joinedAtMs = performance.now();
  }

  /** Called with what each fetch has brought. */
  fetched(batches: readonly FetchedBatch[]): void {
    if (batches.some(({ rawMessages }) => (rawMessages.batches?.length ?? 0) > 0)) this.#workedAtMs = performance.now();
  }

  /** How long the next fetch may wait, in milliseconds. */
  waitMs({ hasPaused, heartbeatInMs }: { hasPaused: boolean; heartbeatInMs: number }): number {
    const nowMs = performance.now();
    if (hasPaused) this.#workedAtMs = nowMs;
    if (nowMs - this.#workedAtMs < AT_REST_AFTER_MS) return BUSY_WAIT_MS;
    const untilHeartbeatMs = Math.ceil(heartbeatInMs) + BEHIND_HEARTBEAT_MS;
    const isAsleep = nowMs - this.#workedAtMs >= ASLEEP_AFTER_MS && nowMs - this.#joinedAtMs >= ASLEEP_AFTER_JOIN_MS;
    return Math.max(BUSY_WAIT_MS, untilHeartbeatMs, isAsleep ? Math.floor(this.#asleepWaitMs) : 0);
  }

  /** Resolves to what the fetch brings, or to nothing when `endAll` comes first. */
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
   * Ends every fetch that is waiting. Called after kafkajs was told to stop, so it starts no other. Otherwise kafkajs,
   * and its connections, would wait for these fetches. Their answers are not read any more, and the connections are
   * closed next.
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
