import { toHorizon, type Watermarks } from '@playline/chain';
import { settleWithin } from '@playline/http';

/** The first time that must not be served yet, of one partition, in epoch microseconds; null while nobody has said. */
export type HorizonOf = (partition: number) => Promise<number | null>;

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
 * Builds what tells how far pages may reach. What stands below a watermark stands for ever, so when none can be read the
 * last one is still true, and also when a lower one is read, as from a store that was emptied. The clock would not do: rows
 * of this moment are still on their way, and a reader who was let past them would never see them.
 * `of` fails only while none has ever been read.
 */
export function createHorizons({ watermarks, onFault, readMaxMs = READ_MAX_MS }: HorizonParts): Horizons {
  const known = new Map<number, number>();
  const readShared = createSharedReads(watermarks.read);
  const learn = async (partition: number) => {
    const read = await settleWithin(readMaxMs, readShared(partition));
    if (read !== null) known.set(partition, Math.max(read, known.get(partition) ?? 0));
  };
  return {
    of: async (partition) => {
      try {
        await learn(partition);
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

/**
 * Reads a watermark for all who ask for it while it is read for somebody else: theirs is the next reading, which begins
 * behind their question, so that each page knows all that was published before it was asked for.
 */
function createSharedReads(read: Watermarks['read']): Watermarks['read'] {
  const underWay = new Map<number, Promise<unknown>>();
  const next = new Map<number, Promise<number | null>>();
  const begin = (partition: number) => {
    const reading = read(partition);
    const ended = reading.catch(() => {}).then(() => underWay.delete(partition));
    underWay.set(partition, ended);
    return reading;
  };
  return (partition) => {
    const before = underWay.get(partition);
    if (before === undefined) return begin(partition);
    const known = next.get(partition);
    if (known !== undefined) return known;
    const reading = before.then(() => {
      next.delete(partition);
      return begin(partition);
    });
    next.set(partition, reading);
    return reading;
  };
}
