import { type ChainStore, toHorizon, type Watermarks } from '@playline/chain';
import { type ReadinessChecks, settleWithin } from '@playline/http';
import { type Metrics, watchWrites } from '@playline/runtime';
import type { Chain } from './chains.ts';

/**
 * Returns the first time of one partition that must not be served yet, in epoch microseconds; null before the first
 * watermark. @param hasCompany whether other pages are being read too, so that a watermark of a moment ago is enough
 */
export type HorizonOf = (partition: number, hasCompany?: boolean) => Promise<number | null>;

export interface HorizonParts {
  watermarks: Pick<Watermarks, 'read'>;
  /** Called when a page is served under the last known horizon. */
  onFault: (fault: unknown) => void;
}

export interface Horizons {
  readonly of: HorizonOf;
  /** The last watermark that was read, in epoch microseconds; null before the first. */
  last(partition: number): number | null;
}

/** A healthy answer takes a millisecond, and a request waits for it. */
const READ_MAX_MS = 250;
/**
 * While several pages are read at the same time, a watermark may be this old. Writers publish a few each second, and
 * asking Redis was one eighth of the cost of a page. A lone reader gets the latest watermark, and so does a reader that
 * reaches the end of the history.
 */
const SHARED_AGE_MAX_MS = 50;

/**
 * Builds the limit of pages. Rows below a watermark are complete for ever, so the last watermark stays valid when none
 * can be read, or a lower one, as from an emptied store. A clock cannot replace it: rows of this moment may still be on
 * their way, and a reader who passed them would never see them. `of` fails only while none has ever been read.
 */
export function createHorizons({ watermarks, onFault }: HorizonParts): Horizons {
  const known = new Map<number, number>();
  const readShared = createSharedReads(watermarks.read);
  const learn = async (partition: number, hasCompany: boolean) => {
    const read = await settleWithin(READ_MAX_MS, readShared(partition, hasCompany));
    if (read !== null) known.set(partition, Math.max(read, known.get(partition) ?? 0));
  };
  return {
    of: async (partition, hasCompany = false) => {
      try {
        await learn(partition, hasCompany);
      } catch (fault) {
        if (!known.has(partition)) throw fault;
        onFault(fault);
      }
      const watermark = known.get(partition);
      return watermark === undefined ? null : toHorizon(watermark);
    },
    last: (partition) => known.get(partition) ?? null,
  };
}

type ReadShared = (partition: number, hasCompany: boolean) => Promise<number | null>;

interface Reading {
  readonly begunAtMs: number;
  readonly watermark: Promise<number | null>;
}

/**
 * Shares one reading of a watermark among all callers that ask before it begins. Callers that ask during a reading get
 * the next one. So a page covers everything published before its request, or until a moment before while others are
 * read.
 */
function createSharedReads(read: Watermarks['read']): ReadShared {
  const lastOf = new Map<number, Reading>();
  const underWay = new Map<number, Promise<unknown>>();
  const next = new Map<number, Promise<number | null>>();
  const begin = (partition: number) => {
    const watermark = read(partition);
    lastOf.set(partition, { begunAtMs: performance.now(), watermark });
    const ended = watermark.catch(() => {}).then(() => underWay.delete(partition));
    underWay.set(partition, ended);
    return watermark;
  };
  return (partition, hasCompany) => {
    const last = lastOf.get(partition);
    if (hasCompany && last !== undefined && performance.now() - last.begunAtMs < SHARED_AGE_MAX_MS)
      return last.watermark;
    const known = next.get(partition);
    if (known !== undefined) return known;
    const before = underWay.get(partition);
    if (before === undefined) return begin(partition);
    const reading = before.then(() => {
      next.delete(partition);
      return begin(partition);
    });
    next.set(partition, reading);
    return reading;
  };
}

interface ReadinessParts {
  store: Pick<ChainStore, 'ready'>;
  horizons: Pick<Horizons, 'of'>;
  chains: readonly Chain[];
  /** False from the start of a drain. */
  accepting: () => boolean;
}

/**
 * Builds the answer to `/readyz`. Horizons count only until they were read once. After that pages are served under the
 * last ones, which taking the service out would end.
 */
export function createReadiness({ store, horizons, chains, accepting }: ReadinessParts): ReadinessChecks {
  let horizonsSeen = false;
  return {
    accepting,
    store: store.ready,
    horizons: async () => {
      if (horizonsSeen) return true;
      const read = await Promise.all(chains.map(({ partition }) => horizons.of(partition)));
      horizonsSeen = read.every((horizon) => horizon !== null);
      return horizonsSeen;
    },
  };
}

interface DegradedParts {
  watermarks: Pick<Watermarks, 'ready'>;
  rateLimitKeys: { ready(): Promise<boolean> };
  minting: {
    /** True when the stores for operations with secret keys answer, and Redis takes writes. */
    ready(): Promise<boolean>;
    /** Of Redis alone. */
    takesWrites(): Promise<boolean>;
  };
  metrics: Metrics;
}

/**
 * Builds the checks that leave the service ready. Without watermarks the feed stops, but it stays correct. Without rate
 * limit keys, calls with a key that is not in memory get 500, and all others are served. Without brokers nothing is
 * minted, but reads go on.
 */
export function createDegraded({ watermarks, rateLimitKeys, minting, metrics }: DegradedParts): ReadinessChecks {
  watchWrites(metrics, minting.takesWrites);
  return { newActivities: watermarks.ready, rateLimitKeys: rateLimitKeys.ready, minting: minting.ready };
}
