/** Searches versions of activities backwards in time, in windows that adapt to what a query may read. */
import { exceedsReadLimits } from './query-view.ts';

export const US_OF_MS = 1_000;

/** Position of a version of an activity. */
export interface ActivityPosition {
  /** Epoch microseconds. */
  readonly updatedUs: number;
  readonly id: string;
}

export interface SearchPage<T> {
  readonly activities: readonly T[];
  /** Null when there is nothing older. */
  readonly next: ActivityPosition | null;
  /** The search read no older version than this, in epoch milliseconds. */
  readonly searchedSinceMs: number;
}

/** Epoch microseconds, both included. */
interface TimeSpan {
  readonly sinceUs: number;
  readonly untilUs: number;
}

/** Within its last microsecond, a window has only the versions that come before the id `before`. */
export interface ActivityWindow extends TimeSpan {
  /** '' when the window excludes all versions of `untilUs`. */
  readonly before: string;
  readonly rowsMax: number;
}

/** Reads the newest rows of a window. Throws a fault of `exceedsReadLimits` when the window is too large. */
export type ReadActivityWindow<T> = (window: ActivityWindow) => Promise<readonly T[]>;

export interface ActivitySource<T> {
  readonly read: ReadActivityWindow<T>;
  /**
   * The time (epoch microseconds) of the version of a contract that has so many newer ones in the span, its last
   * microsecond excluded; of several contracts the latest such time, 0 when none has so many.
   */
  findStart(span: TimeSpan, newer: number): Promise<number>;
  /** Refused windows before `findStart` is called: 1, or more where it costs more than a refused window. */
  readonly refusalsBeforeFindStart: number;
}

interface SearchBounds {
  /** Newest end of the search. Versions of this microsecond are included only before `id`. */
  readonly from: ActivityPosition;
  /** Length of the first window in microseconds. */
  readonly firstSpanUs: number;
  /** Rows of a page. */
  readonly max: number;
  readonly timeMaxMs: number;
}

/** After a refusal each window is so many times as long as the last, at most half way to the refused one. */
const GROWTH_AFTER_REFUSAL = 64;
/** A refused window with unknown start is divided by this. */
const DIVISOR = 16;
/** More versions than rows, because some rows have a later version. */
const VERSIONS_PER_ROW = 1.5;

/**
 * Reads windows from the newest to the oldest until the page is full. The second window is all time before the first,
 * because planning a query costs more than a quiet contract. After a refused window the next one is as long as the page
 * needs, so a contract with millions of versions in one minute fills a page like any other.
 * @throws what the source throws, and its refusal when a single microsecond is too large
 */
export async function searchBackwards<T extends ActivityPosition>(
  source: ActivitySource<T>,
  { from, firstSpanUs, max, timeMaxMs }: SearchBounds,
): Promise<SearchPage<T>> {
  const begin = performance.now();
  const found: T[] = [];
  const spans = createSpans(firstSpanUs);
  let position = from;
  let refusals = 0;
  // Every search must get further than the one before, so it reads at least one window.
  for (let hasRead = false; !hasRead || performance.now() - begin < timeMaxMs; ) {
    const { updatedUs: untilUs, id: before } = position;
    const sinceUs = Math.max(0, untilUs - Math.max(leastSpanOf(before), spans.spanUs));
    const rowsMax = max + 1 - found.length;
    const rows = await readOrNull(source.read, { sinceUs, untilUs, before, rowsMax });
    if (rows === null) {
      refusals++;
      const find = () => source.findStart({ sinceUs, untilUs }, Math.ceil(rowsMax * VERSIONS_PER_ROW));
      // Only once: where a filter leaves few of the newest versions, the next windows must become longer.
      const isDue = refusals === source.refusalsBeforeFindStart;
      spans.refuse({ sinceUs, untilUs }, isDue ? await nullIfRefused(find) : null);
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
    spans.accept(sinceUs);
    hasRead = true;
  }
  return { activities: found, next: position, searchedSinceMs: Math.floor(position.updatedUs / US_OF_MS) };
}

/** Chooses the length of the next window. Times in epoch microseconds. */
function createSpans(firstSpanUs: number) {
  let spanUs = firstSpanUs;
  let growth = Number.POSITIVE_INFINITY;
  // Start of the shortest refused window, except the one over all time: approaching that by halves takes fifty windows.
  let refusedUs: number | null = null;
  return {
    get spanUs() {
      return spanUs;
    },
    /** @param startUs start of a window as long as the page needs; null when unknown */
    refuse({ sinceUs, untilUs }: TimeSpan, startUs: number | null) {
      if (sinceUs > 0) refusedUs = sinceUs;
      growth = GROWTH_AFTER_REFUSAL;
      const isShorter = startUs !== null && startUs > sinceUs;
      spanUs = isShorter ? untilUs - startUs : Math.floor((untilUs - sinceUs) / DIVISOR);
    },
    accept(sinceUs: number) {
      if (refusedUs !== null && refusedUs >= sinceUs) refusedUs = null;
      const halfUs = refusedUs === null ? Number.POSITIVE_INFINITY : Math.floor((sinceUs - refusedUs) / 2);
      spanUs = Math.min(Math.max(1, spanUs) * growth, Math.max(1, halfUs));
    },
  };
}

/** A window without versions of its end needs one microsecond more to have any. */
const leastSpanOf = (before: string) => (before === '' ? 1 : 0);

/** @returns null for a window that is too large and can be divided */
async function readOrNull<T>(read: ReadActivityWindow<T>, window: ActivityWindow): Promise<readonly T[] | null> {
  const isDivisible = window.untilUs - window.sinceUs > leastSpanOf(window.before);
  return isDivisible ? nullIfRefused(() => read(window)) : read(window);
}

async function nullIfRefused<T>(read: () => Promise<T>): Promise<T | null> {
  try {
    return await read();
  } catch (fault) {
    if (exceedsReadLimits(fault)) return null;
    throw fault;
  }
}
