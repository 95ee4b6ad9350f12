import { compareUuids } from '@playline/errors';
import { isTooMuch } from './ask-view.ts';

/** A version of an activity among others. */
export interface ActivityPlace {
  /** Epoch microseconds. */
  readonly updatedUs: number;
  readonly id: string;
}

/** A span of versions, newest first. */
export interface ActivityWindow {
  /** Epoch microseconds; part of the window. */
  readonly sinceUs: number;
  /** Epoch microseconds. Of this microsecond, the window has only the versions that come before `before`. */
  readonly untilUs: number;
  /** Id of an activity; '' when no version of `untilUs` belongs to the window. */
  readonly before: string;
  readonly rowsMax: number;
}

/** Reads the newest rows of a window. Throws a fault of `isTooMuch` when the window has more than one question may read. */
export type ReadActivityWindow<T> = (window: ActivityWindow) => Promise<readonly T[]>;

/** Where a search starts, and when it stops. */
export interface SearchBounds {
  /** The newest end of the search; versions of this microsecond are included only before `id`. */
  readonly from: ActivityPlace;
  /** Rows of a page. */
  readonly max: number;
  /** Milliseconds after which a search that has found too little stops. */
  readonly timeMaxMs: number;
}

export interface SearchedPage<T> {
  readonly activities: readonly T[];
  /** Where the next page begins; null when there is nothing older. */
  readonly next: ActivityPlace | null;
  /** Epoch milliseconds: no older version was looked at. */
  readonly searchedSinceMs: number;
}

export const US_OF_MS = 1_000;
/** A month: most contracts fill a page with it, or are quiet. ClickHouse refuses a busy month before it has read much of it. */
const FIRST_SPAN_US = 31 * 86_400_000 * US_OF_MS;
/** Each window is so many times as long as the one before; more once one was refused, since half the way to there is the limit. */
const GROWTH = { first: 8, afterRefusal: 64 } as const;
/** A refused window is divided by it. */
const DIVISOR = 4;

/**
 * Reads windows from the newest to the oldest until the page is full. A window that is refused as too much is divided, so
 * a contract with millions of versions in one minute fills a page like any other.
 * @throws what `read` throws, and its refusal when even a single microsecond is too much
 */
export async function searchBackwards<T extends ActivityPlace>(
  read: ReadActivityWindow<T>,
  { from, max, timeMaxMs }: SearchBounds,
): Promise<SearchedPage<T>> {
  const begin = performance.now();
  const found: T[] = [];
  const spans = createSpans();
  let place = from;
  // A search must get further than the one before it: it does not stop before it has read one window.
  for (let hasRead = false; !hasRead || performance.now() - begin < timeMaxMs; ) {
    const { updatedUs: untilUs, id: before } = place;
    const sinceUs = Math.max(0, untilUs - Math.max(leastSpanOf(before), spans.spanUs));
    const rows = await readOrNull(read, { sinceUs, untilUs, before, rowsMax: max + 1 - found.length });
    if (rows === null) {
      spans.refuse(sinceUs, untilUs);
      continue;
    }
    found.push(...rows);
    if (found.length > max) return { activities: found.slice(0, max), ...endOf(found[max - 1]!) };
    if (sinceUs === 0) return { activities: found, next: null, searchedSinceMs: 0 };
    // The window was read to its start, which is part of it.
    place = { updatedUs: sinceUs, id: '' };
    spans.accept(sinceUs);
    hasRead = true;
  }
  return { activities: found, next: place, searchedSinceMs: Math.floor(place.updatedUs / US_OF_MS) };
}

/** Chooses how long the next window is. Times in epoch microseconds. */
function createSpans() {
  let spanUs = FIRST_SPAN_US;
  let growth: number = GROWTH.first;
  /** Start of the shortest window that was refused: from the place of the search to there is too much. */
  let refusedUs: number | null = null;
  return {
    get spanUs() {
      return spanUs;
    },
    refuse(sinceUs: number, untilUs: number) {
      refusedUs = sinceUs;
      growth = GROWTH.afterRefusal;
      spanUs = Math.floor((untilUs - sinceUs) / DIVISOR);
    },
    /** @param sinceUs start of the window that was read */
    accept(sinceUs: number) {
      if (refusedUs !== null && refusedUs >= sinceUs) refusedUs = null;
      const halfUs = refusedUs === null ? Number.POSITIVE_INFINITY : Math.floor((sinceUs - refusedUs) / 2);
      spanUs = Math.min(Math.max(1, spanUs) * growth, Math.max(1, halfUs));
    },
  };
}

/** Microseconds: a window without versions of its end needs one more to have any. */
const leastSpanOf = (before: string) => (before === '' ? 1 : 0);

/** @returns null for a window that is too much and can be divided */
async function readOrNull<T>(read: ReadActivityWindow<T>, window: ActivityWindow): Promise<readonly T[] | null> {
  try {
    return await read(window);
  } catch (fault) {
    if (isTooMuch(fault) && window.untilUs - window.sinceUs > leastSpanOf(window.before)) return null;
    throw fault;
  }
}

const endOf = ({ updatedUs, id }: ActivityPlace) => ({
  next: { updatedUs, id },
  searchedSinceMs: Math.floor(updatedUs / US_OF_MS),
});

/** The order of pages: the newest first, and in one microsecond the order that ClickHouse has for ids. */
export function byNewest(a: ActivityPlace, b: ActivityPlace): number {
  return a.updatedUs === b.updatedUs ? compareUuids(b.id, a.id) : b.updatedUs - a.updatedUs;
}
