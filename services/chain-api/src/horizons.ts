import { toHorizon, type Watermarks } from '@playline/chain';
import { settleWithin } from '@playline/http';

/**
 * The first time that must not be served yet, of one partition, in epoch microseconds; null while no watermark was published.
 * @param hasCompany whether other pages are being read too: then a watermark of a moment ago will do
 */
export type HorizonOf = (partition: number, hasCompany?: boolean) => Promise<number | null>;

export interface HorizonParts {
  watermarks: Pick<Watermarks, 'read'>;
  /** Told when a page is served under the last horizon that was known. */
  onFault: (fault: unknown) => void;
  readMaxMs?: number;
}

export interface Horizons {
  readonly of: HorizonOf;
  /** The last watermark that was read, in epoch microseconds; null before the first. */
  known(partition: number): number | null;
}

/** A healthy answer takes a millisecond, and whoever waits for it is a request. */
const READ_MAX_MS = 250;
/**
 * While several pages are read at the same time, a watermark may be this old: writers publish a few a second, and asking
 * Redis was one eighth of what a page costs the process. A lone reader gets the latest one, and so does whoever comes to
 * the end of the history.
 */
const COMPANY_AGE_MAX_MS = 50;

/**
 * Builds what tells how far pages may reach. What stands below a watermark stands for ever, so when none can be read the
 * last one is still true, and also when a lower one is read, as from a store that was emptied. The clock would not do: rows
 * of this moment are still on their way, and a reader who was let past them would never see them.
 * `of` fails only while none has ever been read.
 */
export function createHorizons({ watermarks, onFault, readMaxMs = READ_MAX_MS }: HorizonParts): Horizons {
  const known = new Map<number, number>();
  const readShared = createSharedReads(watermarks.read);
  const learn = async (partition: number, hasCompany: boolean) => {
    const read = await settleWithin(readMaxMs, readShared(partition, hasCompany));
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
    known: (partition) => known.get(partition) ?? null,
  };
}

type ReadShared = (partition: number, hasCompany: boolean) => Promise<number | null>;

interface Reading {
  readonly begunAtMs: number;
  readonly watermark: Promise<number | null>;
}

/**
 * Reads a watermark for all who ask for it before the reading begins; whoever asks during a reading gets the next one. So
 * a page knows all that was published before it was asked for, and one with company all up to a moment before that.
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
    if (hasCompany && last !== undefined && performance.now() - last.begunAtMs < COMPANY_AGE_MAX_MS)
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
