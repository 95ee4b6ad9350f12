import { compareUuids } from '@playline/stores';
import { isTooMuch } from './ask-view.ts';

/** A version of an activity among others. */
export interface ActivityPlace {
  /** Epoch microseconds. */
  readonly updatedUs: number;
  readonly id: string;
}

/** Epoch microseconds; both are part of the span. */
export interface TimeSpan {
  readonly sinceUs: number;
  readonly untilUs: number;
}

/** A span of versions, newest first. Of its last microsecond, the window has only the versions that come before `before`. */
export interface ActivityWindow extends TimeSpan {
  /** Id of an activity; '' when no version of `untilUs` belongs to the window. */
  readonly before: string;
  readonly rowsMax: number;
}

/** Reads the newest rows of a window. Throws a fault of `isTooMuch` when the window has more than one question may read. */
export type ReadActivityWindow<T> = (window: ActivityWindow) => Promise<readonly T[]>;

/** How a search reads. */
export interface ActivitySource<T> {
  readonly read: ReadActivityWindow<T>;
  /**
   * Finds where the window that is long enough begins: the time (epoch microseconds) of the version of a contract that has so
   * many newer ones in this window, without those of its last microsecond. Of several contracts it is the latest such time,
   * and 0 when none has so many.
   */
  findStart(window: TimeSpan, newer: number): Promise<number>;
  /** Refused windows before `findStart` is asked: 1, or more where it costs more than a refused window. */
  readonly refusalsBeforeStart: number;
}

/** Where a search starts, and when it stops. */
export interface SearchBounds {
  /** The newest end of the search; versions of this microsecond are included only before `id`. */
  readonly from: ActivityPlace;
  /** Microseconds that the first window is long. */
  readonly firstSpanUs: number;
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
/** After a refusal each window is so many times as long as the one before, at most half the way to what was refused. */
const GROWTH_AFTER_REFUSAL = 64;
/** A refused window is divided by it where nothing is known of its start. All the time becomes three and a half years. */
const DIVISOR = 16;
/** So many more versions than rows: some of them have a later version. */
const VERSIONS_OF_A_ROW = 1.5;

/**
 * Reads windows from the newest to the oldest until the page is full. The second window is all the time before the first,
 * because the planning of a question costs more than what it reads in a quiet contract. After a window that is refused as
 * too much, the next one is as long as the page needs. So a contract with millions of versions in one minute fills a page
 * like any other.
 * @throws what the source throws, and its refusal when even a single microsecond is too much
 */
export async function searchBackwards<T extends ActivityPlace>(
  source: ActivitySource<T>,
  { from, firstSpanUs, max, timeMaxMs }: SearchBounds,
): Promise<SearchedPage<T>> {
  const begin = performance.now();
  const found: T[] = [];
  const spans = createSpans(firstSpanUs);
  let place = from;
  let refusals = 0;
  // A search must get further than the one before it: it does not stop before it has read one window.
  for (let hasRead = false; !hasRead || performance.now() - begin < timeMaxMs; ) {
    const { updatedUs: untilUs, id: before } = place;
    const sinceUs = Math.max(0, untilUs - Math.max(leastSpanOf(before), spans.spanUs));
    const rowsMax = max + 1 - found.length;
    const rows = await readOrNull(source.read, { sinceUs, untilUs, before, rowsMax });
    if (rows === null) {
      refusals++;
      const find = () => source.findStart({ sinceUs, untilUs }, Math.ceil(rowsMax * VERSIONS_OF_A_ROW));
      // Once: where a filter leaves few of the newest versions, the next windows must be longer, and not as short again.
      const isAsked = refusals === source.refusalsBeforeStart;
      spans.refuse({ sinceUs, untilUs }, isAsked ? await nullIfTooMuch(find) : null);
      continue;
    }
    for (const each of rows) found.push(each);
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
function createSpans(firstSpanUs: number) {
  let spanUs = firstSpanUs;
  let growth = Number.POSITIVE_INFINITY;
  /**
   * Start of the shortest window that was refused: from the place of the search to there is too much. Not that of all the
   * time, which says nothing: to come near it by halves would take fifty windows of years without data.
   */
  let refusedUs: number | null = null;
  return {
    get spanUs() {
      return spanUs;
    },
    /** @param startUs where a window begins that is as long as the page needs; null when not known */
    refuse({ sinceUs, untilUs }: TimeSpan, startUs: number | null) {
      if (sinceUs > 0) refusedUs = sinceUs;
      growth = GROWTH_AFTER_REFUSAL;
      const isShorter = startUs !== null && startUs > sinceUs;
      spanUs = isShorter ? untilUs - startUs : Math.floor((untilUs - sinceUs) / DIVISOR);
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
  const isDivisible = window.untilUs - window.sinceUs > leastSpanOf(window.before);
  return isDivisible ? nullIfTooMuch(() => read(window)) : read(window);
}

async function nullIfTooMuch<T>(ask: () => Promise<T>): Promise<T | null> {
  try {
    return await ask();
  } catch (fault) {
    if (isTooMuch(fault)) return null;
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
