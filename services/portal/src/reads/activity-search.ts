/** Searches activity versions backwards in time. The length of each window adapts to the read limits of ClickHouse. */
import { exceedsReadLimits } from './query-view.ts';

export const US_OF_MS = 1_000;

export interface ActivityPosition {
  readonly updatedUs: number;
  readonly id: string;
}

export interface SearchPage<T> {
  readonly activities: readonly T[];
  readonly next: ActivityPosition | null;
  /** The search is complete back to this time, in epoch milliseconds. */
  readonly searchedSinceMs: number;
}

/** Inclusive bounds in epoch microseconds. */
interface TimeRangeUs {
  readonly sinceUs: number;
  readonly untilUs: number;
}

/** Of the versions in its last microsecond, a window contains only those with an id that sorts before `before`. */
export interface ActivityWindow extends TimeRangeUs {
  /** If empty, the last microsecond is excluded. */
  readonly before: string;
  readonly rowsMax: number;
}

/** Reads the newest rows in a window. @throws an error that satisfies `exceedsReadLimits` if the window is too large */
export type ReadActivityWindow<T> = (window: ActivityWindow) => Promise<readonly T[]>;

export interface ActivitySource<T> {
  readonly read: ReadActivityWindow<T>;
  /**
   * For each contract, finds the time of the version with `newerCount` newer versions in the range, without the last
   * microsecond of the range. Returns the latest of these times in epoch microseconds; 0 if there are too few versions.
   */
  findStart(range: TimeRangeUs, newerCount: number): Promise<number>;
  /** Number of rejected windows before `findStart` is called; more than 1 if a rejected window is cheaper. */
  readonly rejectionsBeforeFindStart: number;
}

interface SearchBounds {
  /** The newest position, exclusive. */
  readonly from: ActivityPosition;
  readonly firstWindowUs: number;
  readonly max: number;
  readonly timeMaxMs: number;
}

/** After a rejection, windows grow by this factor, but at most halfway to the start of the rejected window. */
const GROWTH_AFTER_REJECTION = 64;
/** If the start of the page is unknown, a rejected window is divided by this number. */
const DIVISOR = 16;
/** Compensates for superseded versions, which are not returned. */
const VERSIONS_PER_ROW = 1.5;

/**
 * Reads windows from newest to oldest until the page is full. The second window covers all time before the first one,
 * because planning a query costs more than reading the history of a typical contract. After a rejected window,
 * `findStart` determines the length of the next window, so that few queries fill a page even for busy contracts.
 * @throws any error of the source, including the limit error if a single microsecond is too large
 */
export async function searchBackwards<T extends ActivityPosition>(
  source: ActivitySource<T>,
  { from, firstWindowUs, max, timeMaxMs }: SearchBounds,
): Promise<SearchPage<T>> {
  const startedAt = performance.now();
  const found: T[] = [];
  const lengths = createWindowLengths(firstWindowUs);
  let position = from;
  let rejections = 0;
  // At least one window is read, so that every search makes progress.
  for (let hasRead = false; !hasRead || performance.now() - startedAt < timeMaxMs; ) {
    const { updatedUs: untilUs, id: before } = position;
    const sinceUs = Math.max(0, untilUs - Math.max(minLengthOf(before), lengths.currentUs));
    const rowsMax = max + 1 - found.length;
    const rows = await readOrNull(source.read, { sinceUs, untilUs, before, rowsMax });
    if (rows === null) {
      rejections++;
      const find = () => source.findStart({ sinceUs, untilUs }, Math.ceil(rowsMax * VERSIONS_PER_ROW));
      // `findStart` is called only once, because windows must grow if the filter matches few of the newest versions.
      const isDue = rejections === source.rejectionsBeforeFindStart;
      lengths.shrink({ sinceUs, untilUs }, isDue ? await nullIfTooLarge(find) : null);
      continue;
    }
    for (const each of rows) found.push(each);
    if (found.length > max) {
      const { updatedUs, id } = found[max - 1]!;
      const searchedSinceMs = Math.floor(updatedUs / US_OF_MS);
      return { activities: found.slice(0, max), next: { updatedUs, id }, searchedSinceMs };
    }
    if (sinceUs === 0) return { activities: found, next: null, searchedSinceMs: 0 };
    position = { updatedUs: sinceUs, id: '' };
    lengths.grow(sinceUs);
    hasRead = true;
  }
  return { activities: found, next: position, searchedSinceMs: Math.floor(position.updatedUs / US_OF_MS) };
}

/** Determines the length of each window in microseconds. */
function createWindowLengths(firstWindowUs: number) {
  let lengthUs = firstWindowUs;
  let growth = Number.POSITIVE_INFINITY;
  // Start of the shortest rejected window. Ignores all-time windows, because halving the way to 0 takes 50 windows.
  let rejectedSinceUs: number | null = null;
  return {
    get currentUs() {
      return lengthUs;
    },
    /** @param startUs start of the page; null if unknown */
    shrink({ sinceUs, untilUs }: TimeRangeUs, startUs: number | null) {
      if (sinceUs > 0) rejectedSinceUs = sinceUs;
      growth = GROWTH_AFTER_REJECTION;
      const isShorter = startUs !== null && startUs > sinceUs;
      lengthUs = isShorter ? untilUs - startUs : Math.floor((untilUs - sinceUs) / DIVISOR);
    },
    grow(sinceUs: number) {
      if (rejectedSinceUs !== null && rejectedSinceUs >= sinceUs) rejectedSinceUs = null;
      const halfUs = rejectedSinceUs === null ? Number.POSITIVE_INFINITY : Math.floor((sinceUs - rejectedSinceUs) / 2);
      lengthUs = Math.min(Math.max(1, lengthUs) * growth, Math.max(1, halfUs));
    },
  };
}

/** A window that excludes its last microsecond must be at least one microsecond long. */
const minLengthOf = (before: string) => (before === '' ? 1 : 0);

/** @returns null if the window is too large and can be divided */
async function readOrNull<T>(read: ReadActivityWindow<T>, window: ActivityWindow): Promise<readonly T[] | null> {
  const isDivisible = window.untilUs - window.sinceUs > minLengthOf(window.before);
  return isDivisible ? nullIfTooLarge(() => read(window)) : read(window);
}

async function nullIfTooLarge<T>(read: () => Promise<T>): Promise<T | null> {
  try {
    return await read();
  } catch (fault) {
    if (exceedsReadLimits(fault)) return null;
    throw fault;
  }
}
