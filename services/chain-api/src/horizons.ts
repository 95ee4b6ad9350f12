import { type ChainStore, toHorizon, type Watermarks } from '@playline/chain';
import { type ReadinessChecks, settleWithin } from '@playline/http';
import type { Chain } from './chains.ts';

/**
 * The first time of a partition that is not served yet, in epoch microseconds; null before the first watermark.
 * @param isShared other pages are read too, so a watermark may be a moment old
 */
export type HorizonOf = (partition: number, isShared?: boolean) => Promise<number | null>;

interface HorizonParts {
  watermarks: Pick<Watermarks, 'read'>;
  /** A page is served under the last known horizon. */
  onFault: (fault: unknown) => void;
}

/** A healthy answer takes a millisecond. */
const READ_MAX_MS = 250;
/** Redis was one eighth of the cost of a page. A single reader gets the latest watermark. */
const SHARED_AGE_MAX_MS = 50;

/** Rows below a watermark are complete forever, so the last one is used when none can be read. */
export function createHorizons({ watermarks, onFault }: HorizonParts) {
  const known = new Map<number, number>();
  const readShared = createSharedReads(watermarks.read);
  const learn = async (partition: number, isShared: boolean) => {
    const read = await settleWithin(READ_MAX_MS, readShared(partition, isShared));
    if (read !== null) known.set(partition, Math.max(read, known.get(partition) ?? 0));
  };
  return {
    of: async (partition: number, isShared = false) => {
      try {
        await learn(partition, isShared);
      } catch (fault) {
        if (!known.has(partition)) throw fault;
        onFault(fault);
      }
      const watermark = known.get(partition);
      return watermark === undefined ? null : toHorizon(watermark);
    },
    /** Epoch microseconds; null before the first. */
    last: (partition: number) => known.get(partition) ?? null,
  };
}

type ReadShared = (partition: number, isShared: boolean) => Promise<number | null>;

interface Reading {
  readonly begunAtMs: number;
  readonly watermark: Promise<number | null>;
}

/** Shares a read among callers that arrive before it begins. */
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
  return (partition, isShared) => {
    const last = lastOf.get(partition);
    if (isShared && last !== undefined && performance.now() - last.begunAtMs < SHARED_AGE_MAX_MS) return last.watermark;
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
  horizons: { of: HorizonOf };
  chains: readonly Chain[];
  /** False from the start of a drain. */
  accepting: () => boolean;
}

/** Horizons count only until they were read once. */
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
