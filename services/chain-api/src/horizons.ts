import { type ChainStore, toHorizon, type Watermarks } from '@playline/chain';
import { type ReadinessChecks, settleWithin } from '@playline/http';
import type { Chain } from './chains.ts';

/**
 * Returns the exclusive upper bound of `updated_at` for pages, in epoch microseconds; null before the first watermark.
 * @param isShared true if concurrent readers can share a slightly older watermark
 */
export type ReadHorizon = (partition: number, isShared?: boolean) => Promise<number | null>;

interface HorizonParts {
  watermarks: Pick<Watermarks, 'read'>;
  /** Called when a watermark cannot be read and the last known horizon is used. */
  onFault: (fault: unknown) => void;
}

/** Redis normally responds within a millisecond. */
const READ_MAX_MS = 250;
/** Reading watermarks took an eighth of the time needed for pages. A single reader always gets the latest watermark. */
const SHARED_AGE_MAX_MS = 50;

/** Rows below a watermark never change, so the last known watermark is safe to use when Redis is unavailable. */
export function createHorizons({ watermarks, onFault }: HorizonParts) {
  const lastWatermarks = new Map<number, number>();
  const readShared = createSharedReads(watermarks.read);
  const refresh = async (partition: number, isShared: boolean) => {
    const read = await settleWithin(READ_MAX_MS, readShared(partition, isShared));
    if (read !== null) lastWatermarks.set(partition, Math.max(read, lastWatermarks.get(partition) ?? 0));
  };
  return {
    read: async (partition: number, isShared = false) => {
      try {
        await refresh(partition, isShared);
      } catch (fault) {
        if (!lastWatermarks.has(partition)) throw fault;
        onFault(fault);
      }
      const watermark = lastWatermarks.get(partition);
      return watermark === undefined ? null : toHorizon(watermark);
    },
    /** The last watermark in epoch microseconds; null before the first watermark. */
    lastKnown: (partition: number) => lastWatermarks.get(partition) ?? null,
  };
}

type ReadShared = (partition: number, isShared: boolean) => Promise<number | null>;

interface Reading {
  readonly startedAtMs: number;
  readonly watermark: Promise<number | null>;
}

/** Callers that arrive during a read share the next read. */
function createSharedReads(read: Watermarks['read']): ReadShared {
  const lastReading = new Map<number, Reading>();
  const inFlight = new Map<number, Promise<unknown>>();
  const queued = new Map<number, Promise<number | null>>();
  const start = (partition: number) => {
    const watermark = read(partition);
    lastReading.set(partition, { startedAtMs: performance.now(), watermark });
    const settled = watermark.catch(() => {}).then(() => inFlight.delete(partition));
    inFlight.set(partition, settled);
    return watermark;
  };
  return (partition, isShared) => {
    const last = lastReading.get(partition);
    const isRecent = last !== undefined && performance.now() - last.startedAtMs < SHARED_AGE_MAX_MS;
    if (isShared && isRecent) return last.watermark;
    const next = queued.get(partition);
    if (next !== undefined) return next;
    const current = inFlight.get(partition);
    if (current === undefined) return start(partition);
    const reading = current.then(() => {
      queued.delete(partition);
      return start(partition);
    });
    queued.set(partition, reading);
    return reading;
  };
}

interface ReadinessParts {
  store: Pick<ChainStore, 'ready'>;
  horizons: { read: ReadHorizon };
  chains: readonly Chain[];
  /** False once the service starts to drain. */
  accepting: () => boolean;
}

/** Requires a horizon for every chain once, at startup. Later Redis failures leave the service ready. */
export function createReadiness({ store, horizons, chains, accepting }: ReadinessParts): ReadinessChecks {
  let hasHorizons = false;
  return {
    accepting,
    store: store.ready,
    horizons: async () => {
      if (hasHorizons) return true;
      const read = await Promise.all(chains.map(({ partition }) => horizons.read(partition)));
      hasHorizons = read.every((horizon) => horizon !== null);
      return hasHorizons;
    },
  };
}
