/** Divides the capacity of a process fairly among projects. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { PublicError } from '@playline/errors';
import type { QueryOptions, QueryRows } from '@playline/stores';
import type { Visit } from './page.ts';

export interface Capacity {
  readonly name: string;
  readonly total: number;
  /** Part of `total` that is reserved for administrators. */
  readonly reserved: number;
  readonly perProject: number;
  readonly waitMs: number;
}

export const CAPACITIES = {
  /** Must match `subscribersMax` in `LIVE_LIMITS`. */
  streams: { name: 'live streams', total: 64, reserved: 8, perProject: 16, waitMs: 0 },
  exports: { name: 'exports', total: 12, reserved: 2, perProject: 3, waitMs: 0 },
  /** ClickHouse allows 40 concurrent queries for the account, which two portal processes and Live share. */
  queries: { name: 'queries', total: 18, reserved: 3, perProject: 6, waitMs: 5_000 },
} as const satisfies Record<string, Capacity>;

export interface Claimant {
  /** Project id, or account id for pages without a project. */
  readonly share: string;
  readonly isAdministrator: boolean;
}

export function claimantOf({ project, account, address }: Pick<Visit, 'project' | 'account' | 'address'>): Claimant {
  return { share: project?.id ?? account?.id ?? address, isAdministrator: account?.isAdministrator === true };
}

export type Release = () => void;

export interface FairLimiter {
  /** @throws PublicError TOO_MANY_REQUESTS_ERROR if no capacity becomes available in time; the reason of `signal` */
  acquire(claimant: Claimant, signal?: AbortSignal): Promise<Release>;
}

interface Waiting {
  readonly claimant: Claimant;
  readonly proceed: () => void;
}

const RETRY_AFTER_S = 10;

/** Released capacity goes to the waiting project with the lowest usage, then to the longest waiting request. */
export function createFairLimiter(capacity: Capacity): FairLimiter {
  const usage = createUsage(capacity);
  let waiting: Waiting[] = [];
  const rank = ({ claimant }: Waiting) => (claimant.isAdministrator ? -1 : usage.countFor(claimant));
  const take = (claimant: Claimant): Release => {
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
        resolve(take(claimant));
      };
      const entry: Waiting = { claimant, proceed };
      signal?.addEventListener('abort', abort, { once: true });
      waiting.push(entry);
    });
  return {
    async acquire(claimant, signal) {
      signal?.throwIfAborted();
      if (usage.isAvailable(claimant)) return take(claimant);
      if (capacity.waitMs === 0) throw usage.toError(claimant);
      return wait(claimant, signal);
    },
  };
}

function createUsage({ name, total, reserved, perProject }: Capacity) {
  const byShare = new Map<string, number>();
  let [used, byProjects] = [0, 0];
  const countFor = ({ share }: Claimant) => byShare.get(share) ?? 0;
  return {
    countFor,
    isAvailable: (claimant: Claimant) =>
      used < total && (claimant.isAdministrator || (byProjects < total - reserved && countFor(claimant) < perProject)),
    count(claimant: Claimant, change: 1 | -1): void {
      used += change;
      if (claimant.isAdministrator) return;
      byProjects += change;
      const count = countFor(claimant) + change;
      if (count === 0) byShare.delete(claimant.share);
      else byShare.set(claimant.share, count);
    },
    toError(claimant: Claimant): PublicError {
      const owner = claimant.isAdministrator || countFor(claimant) < perProject ? 'This portal' : 'Your project';
      return new PublicError('TOO_MANY_REQUESTS_ERROR', {
        message: `${owner} has reached its limit for concurrent ${name}. Try again in ${RETRY_AFTER_S} seconds.`,
        retryAfterS: RETRY_AFTER_S,
      });
    },
  };
}

export interface PortalShares {
  readonly streams: FairLimiter;
  readonly exports: FairLimiter;
  /** Runs `handle`. Its queries count against the project of the visit. */
  run<T>(visit: Visit, handle: () => Promise<T>): Promise<T>;
  /** Limits the queries within `run` and sets their ClickHouse quota key. Other queries are not limited. */
  limitQueries(query: QueryRows): QueryRows;
}

export function createPortalShares(capacities: Record<keyof typeof CAPACITIES, Capacity> = CAPACITIES): PortalShares {
  const queries = createFairLimiter(capacities.queries);
  const current = new AsyncLocalStorage<Claimant>();
  return {
    streams: createFairLimiter(capacities.streams),
    exports: createFairLimiter(capacities.exports),
    run: (visit, handle) => current.run(claimantOf(visit), handle),
    limitQueries: (query) =>
      async function* limited(sql: string, options: QueryOptions = {}) {
        const claimant = current.getStore();
        if (claimant === undefined) return yield* query(sql, options);
        const release = await queries.acquire(claimant, options.signal);
        const quotaKey = claimant.isAdministrator ? 'administrators' : claimant.share;
        try {
          yield* query(sql, { ...options, quotaKey });
        } finally {
          release();
        }
      },
  };
}
