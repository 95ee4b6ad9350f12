/** Divides the capacity of a process among projects. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { PublicError } from '@playline/errors';
import type { QueryOptions, QueryRows } from '@playline/stores';
import type { Visit } from './page.ts';

export interface Capacity {
  /** For error messages: "live streams". */
  readonly name: string;
  /** In this process. */
  readonly total: number;
  /** Of the total, only for administrators. */
  readonly reserved: number;
  /** Administrators count for no project. */
  readonly perProject: number;
  /** How long a request waits for a free one. */
  readonly waitMs: number;
}

export const CAPACITIES = {
  /** `subscribersMax` of Live. */
  streams: { name: 'live streams', total: 64, reserved: 8, perProject: 16, waitMs: 0 },
  exports: { name: 'exports', total: 12, reserved: 2, perProject: 3, waitMs: 0 },
  /** ClickHouse allows the account 40: two processes of the portal, less what Live reads. */
  queries: { name: 'queries', total: 18, reserved: 3, perProject: 6, waitMs: 5_000 },
} as const satisfies Record<string, Capacity>;

export interface Claimant {
  /** The project; for a page without one the account. */
  readonly share: string;
  readonly isAdministrator: boolean;
}

export function claimantOf({ project, account, address }: Pick<Visit, 'project' | 'account' | 'address'>): Claimant {
  return { share: project?.id ?? account?.id ?? address, isAdministrator: account?.isAdministrator === true };
}

/** Further calls do nothing. */
export type Release = () => void;

export interface FairLimiter {
  /** @throws PublicError TOO_MANY_REQUESTS_ERROR when none became free in time, or the reason of the signal */
  acquire(claimant: Claimant, signal?: AbortSignal): Promise<Release>;
}

interface Waiting {
  readonly claimant: Claimant;
  readonly proceed: () => void;
}

const RETRY_AFTER_S = 10;

/** What becomes free goes to the waiting project that uses least, and among equals to the first. */
export function createFairLimiter(capacity: Capacity): FairLimiter {
  const use = createUse(capacity);
  let waiting: Waiting[] = [];
  const rank = ({ claimant }: Waiting) => (claimant.isAdministrator ? -1 : use.of(claimant));
  const take = (claimant: Claimant): Release => {
    use.count(claimant, 1);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      use.count(claimant, -1);
      const [next] = waiting.filter((each) => use.isFree(each.claimant)).toSorted((a, b) => rank(a) - rank(b));
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
      const refuse = (reason: unknown) => {
        stop();
        reject(reason);
      };
      const abort = () => refuse(signal?.reason);
      const timer = setTimeout(() => refuse(use.toError(claimant)), capacity.waitMs);
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
      if (use.isFree(claimant)) return take(claimant);
      if (capacity.waitMs === 0) throw use.toError(claimant);
      return wait(claimant, signal);
    },
  };
}

/** Counts what is in use, and by which projects. */
function createUse({ name, total, reserved, perProject }: Capacity) {
  const used = new Map<string, number>();
  let [all, ofProjects] = [0, 0];
  const of = ({ share }: Claimant) => used.get(share) ?? 0;
  return {
    of,
    isFree: (claimant: Claimant) =>
      all < total && (claimant.isAdministrator || (ofProjects < total - reserved && of(claimant) < perProject)),
    count(claimant: Claimant, change: 1 | -1): void {
      all += change;
      if (claimant.isAdministrator) return;
      ofProjects += change;
      const left = of(claimant) + change;
      if (left === 0) used.delete(claimant.share);
      else used.set(claimant.share, left);
    },
    toError(claimant: Claimant): PublicError {
      const owner = claimant.isAdministrator || of(claimant) < perProject ? 'This portal' : 'Your project';
      return new PublicError('TOO_MANY_REQUESTS_ERROR', {
        message: `${owner} has reached its limit of ${name}. Close one, or try again in ${RETRY_AFTER_S} seconds.`,
        retryAfterS: RETRY_AFTER_S,
      });
    },
  };
}

export interface PortalShares {
  readonly streams: FairLimiter;
  readonly exports: FairLimiter;
  /** Runs the work of a visit, whose queries then count for the visit's project. */
  run<T>(visit: Visit, work: () => Promise<T>): Promise<T>;
  /** Limits queries of visits and sets the quota key of their project. Other queries pass. */
  limitQueries(query: QueryRows): QueryRows;
}

export function createPortalShares(capacities: Record<keyof typeof CAPACITIES, Capacity> = CAPACITIES): PortalShares {
  const queries = createFairLimiter(capacities.queries);
  const current = new AsyncLocalStorage<Claimant>();
  return {
    streams: createFairLimiter(capacities.streams),
    exports: createFairLimiter(capacities.exports),
    run: (visit, work) => current.run(claimantOf(visit), work),
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
