/** Divides the capacity of a process fairly among projects. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { PublicError } from '@playline/errors';
import type { QueryOptions, QueryRows } from '@playline/stores';
import type { Visit } from './page.ts';

export interface Capacity {
  readonly name: string;
  readonly total: number;
  /** The part of `total` that only administrators can use. */
  readonly reserved: number;
  readonly perProject: number;
  readonly waitMs: number;
}

export const CAPACITIES = {
  /** Must match `subscribersMax` in `LIVE_LIMITS`. */
  streams: { name: 'live streams', total: 64, reserved: 8, perProject: 16, waitMs: 0 },
  exports: { name: 'exports', total: 12, reserved: 2, perProject: 3, waitMs: 0 },
  /** ClickHouse allows the account 40 concurrent queries, enough for two processes and the fence queries of Live. */
  queries: { name: 'queries', total: 18, reserved: 3, perProject: 6, waitMs: 5_000 },
} as const satisfies Record<string, Capacity>;

export interface Claimant {
  /** Project id; account id for pages without a project; client address before sign-in. */
  readonly key: string;
  readonly isAdministrator: boolean;
}

export function claimantOf({ project, account, address }: Pick<Visit, 'project' | 'account' | 'address'>): Claimant {
  return { key: project?.id ?? account?.id ?? address, isAdministrator: account?.isAdministrator === true };
}

export type Release = () => void;

export interface FairLimiter {
  /** @throws PublicError TOO_MANY_REQUESTS_ERROR if no capacity becomes available in time; the abort reason */
  acquire(claimant: Claimant, signal?: AbortSignal): Promise<Release>;
}

interface WaitingRequest {
  readonly claimant: Claimant;
  readonly proceed: () => void;
}

const RETRY_AFTER_S = 10;

/** Released capacity goes to the waiting project with the lowest usage, then to the longest waiting request. */
export function createFairLimiter(capacity: Capacity): FairLimiter {
  const usage = createUsage(capacity);
  let waiting: WaitingRequest[] = [];
  const rank = ({ claimant }: WaitingRequest) => (claimant.isAdministrator ? -1 : usage.countFor(claimant));
  const claim = (claimant: Claimant): Release => {
    usage.count(claimant, 1);
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      usage.count(claimant, -1);
      const [next] = waiting.filter((each) => usage.isAvailable(each.claimant)).toSorted((a, b) => rank(a) - rank(b));
      next?.proceed();
    };
  };
  const wait = (claimant: Claimant, signal?: AbortSignal) =>
    new Promise<Release>((resolve, reject) => {
      const stop = () => {
        waiting = waiting.filter((each) => each !== entry);
        clearTimeout(timer);
        signal?.removeEventListener('abort', abort);
      };
      const fail = (reason: unknown) => {
        stop();
        reject(reason);
      };
      const abort = () => fail(signal?.reason);
      const timer = setTimeout(() => fail(usage.toError(claimant)), capacity.waitMs);
      const proceed = () => {
        stop();
        resolve(claim(claimant));
      };
      const entry: WaitingRequest = { claimant, proceed };
      signal?.addEventListener('abort', abort, { once: true });
      waiting.push(entry);
    });
  return {
    async acquire(claimant, signal) {
      signal?.throwIfAborted();
      if (usage.isAvailable(claimant)) return claim(claimant);
      if (capacity.waitMs === 0) throw usage.toError(claimant);
      return wait(claimant, signal);
    },
  };
}

function createUsage({ name, total, reserved, perProject }: Capacity) {
  const countByKey = new Map<string, number>();
  let [used, projectUse] = [0, 0];
  const countFor = ({ key }: Claimant) => countByKey.get(key) ?? 0;
  return {
    countFor,
    isAvailable: (claimant: Claimant) =>
      used < total && (claimant.isAdministrator || (projectUse < total - reserved && countFor(claimant) < perProject)),
    count(claimant: Claimant, change: 1 | -1): void {
      used += change;
      if (claimant.isAdministrator) return;
      projectUse += change;
      const count = countFor(claimant) + change;
      if (count === 0) countByKey.delete(claimant.key);
      else countByKey.set(claimant.key, count);
    },
    toError(claimant: Claimant): PublicError {
      const subject = claimant.isAdministrator || countFor(claimant) < perProject ? 'This portal' : 'Your project';
      return new PublicError('TOO_MANY_REQUESTS_ERROR', {
        message: `${subject} has reached its limit for concurrent ${name}. Try again in ${RETRY_AFTER_S} seconds.`,
        retryAfterS: RETRY_AFTER_S,
      });
    },
  };
}

export interface PortalLimiters {
  readonly streams: FairLimiter;
  readonly exports: FairLimiter;
  /** Runs `handle` and counts its queries against the visit's project. */
  run<T>(visit: Visit, handle: () => Promise<T>): Promise<T>;
  /** Limits queries that are sent within `run`, and sets their ClickHouse quota key. Does not limit other queries. */
  limitQueries(query: QueryRows): QueryRows;
}

export function createPortalLimiters(limits: Record<keyof typeof CAPACITIES, Capacity> = CAPACITIES): PortalLimiters {
  const queries = createFairLimiter(limits.queries);
  const current = new AsyncLocalStorage<Claimant>();
  return {
    streams: createFairLimiter(limits.streams),
    exports: createFairLimiter(limits.exports),
    run: (visit, handle) => current.run(claimantOf(visit), handle),
    limitQueries: (query) =>
      async function* limited(sql: string, options: QueryOptions = {}) {
        const claimant = current.getStore();
        if (claimant === undefined) return yield* query(sql, options);
        const release = await queries.acquire(claimant, options.signal);
        const quotaKey = claimant.isAdministrator ? 'administrators' : claimant.key;
        try {
          yield* query(sql, { ...options, quotaKey });
        } finally {
          release();
        }
      },
  };
}
