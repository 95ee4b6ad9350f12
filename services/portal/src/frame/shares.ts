import { AsyncLocalStorage } from 'node:async_hooks';
import { PublicError } from '@playline/errors';
import type { QueryOptions, QueryRows } from '@playline/stores';
import type { Visit } from './page.ts';

/** Something of which the portal has only so many at one time. */
export interface Capacity {
  /** For an error message: "live streams". */
  readonly name: string;
  /** All together, in this process. */
  readonly total: number;
  /** Of these, for administrators only. */
  readonly reserved: number;
  /** For one project; administrators count in none. */
  readonly perProject: number;
  /** A request waits so long for one. */
  readonly waitMs: number;
}

export const CAPACITIES = {
  /** As many as the hub has lookers; two people with all their tabs, for each project. */
  streams: { name: 'live streams', total: 64, reserved: 8, perProject: 16, waitMs: 0 },
  /** An export lasts as long as its client reads. */
  exports: { name: 'exports', total: 12, reserved: 2, perProject: 3, waitMs: 0 },
  /** ClickHouse allows 40 for the account: two processes of the portal, less what Live reads by itself. */
  queries: { name: 'queries', total: 18, reserved: 3, perProject: 6, waitMs: 5_000 },
} as const satisfies Record<string, Capacity>;

/** For whom something is taken. */
export interface Claimant {
  /** The project; for a page without one the account, which then has a share of its own. */
  readonly share: string;
  readonly isAdministrator: boolean;
}

export function claimantOf({ project, account, address }: Pick<Visit, 'project' | 'account' | 'address'>): Claimant {
  return { share: project?.id ?? account?.id ?? address, isAdministrator: account?.isAdministrator === true };
}

/** Gives back what was taken; further calls do nothing. */
export type Release = () => void;

export interface FairLimiter {
  /** @throws PublicError TOO_MANY_REQUESTS_ERROR when none got free in time, or what aborted the signal */
  acquire(claimant: Claimant, signal?: AbortSignal): Promise<Release>;
}

interface Waiting {
  readonly claimant: Claimant;
  readonly proceed: () => void;
}

const RETRY_AFTER_S = 10;

/** Divides a supply. What gets free goes to the waiting project that uses least, and among equals to the first. */
export function createFairLimiter(supply: Capacity): FairLimiter {
  const use = createUse(supply);
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
      const timer = setTimeout(() => refuse(use.refusalOf(claimant)), supply.waitMs);
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
      if (supply.waitMs === 0) throw use.refusalOf(claimant);
      return wait(claimant, signal);
    },
  };
}

/** How much of a supply is in use, and by which projects. */
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
    refusalOf(claimant: Claimant): PublicError {
      const whose = claimant.isAdministrator || of(claimant) < perProject ? 'This portal' : 'Your project';
      return new PublicError('TOO_MANY_REQUESTS_ERROR', {
        message: `${whose} has as many ${name} open as it may. Close one that is not needed, or try again in ${RETRY_AFTER_S} seconds.`,
        retryAfterS: RETRY_AFTER_S,
      });
    },
  };
}

/** How the portal is divided among projects. */
export interface PortalShares {
  readonly streams: FairLimiter;
  readonly exports: FairLimiter;
  /** Runs what answers a visit: its queries are those of the visit's project. */
  run<T>(visit: Visit, work: () => Promise<T>): Promise<T>;
  /**
   * Sends queries as a visit's project has room for them, and counts them by its quota of rows; those outside a visit at
   * once.
   */
  limitQueries(query: QueryRows): QueryRows;
}

export function createPortalShares(supplies: Record<keyof typeof CAPACITIES, Capacity> = CAPACITIES): PortalShares {
  const queries = createFairLimiter(supplies.queries);
  const current = new AsyncLocalStorage<Claimant>();
  return {
    streams: createFairLimiter(supplies.streams),
    exports: createFairLimiter(supplies.exports),
    run: (visit, work) => current.run(claimantOf(visit), work),
    limitQueries: (query) =>
      async function* divided(sql: string, options: QueryOptions = {}) {
        const claimant = current.getStore();
        if (claimant === undefined) return yield* query(sql, options);
        const leave = await queries.acquire(claimant, options.signal);
        const quotaKey = claimant.isAdministrator ? 'administrators' : claimant.share;
        try {
          yield* query(sql, { ...options, quotaKey });
        } finally {
          leave();
        }
      },
  };
}
