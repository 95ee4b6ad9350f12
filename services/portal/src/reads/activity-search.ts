/** Searches activity versions backwards in time, with windows that adapt to the read limits of a query. */
import { exceedsReadLimits } from './query-view.ts';

export const US_OF_MS = 1_000;

export interface ActivityPosition {
  readonly updatedUs: number;
  readonly id: string;
}

export interface SearchPage<T> {
  readonly activities: readonly T[];
  readonly next: ActivityPosition | null;
  /** Time back to which the search has read, in epoch milliseconds. */
  readonly searchedSinceMs: number;
}

/** Inclusive bounds in epoch microseconds. */
interface TimeRangeUs {
  readonly sinceUs: number;
  readonly untilUs: number;
}

/** In its last microsecond, a window contains only versions that sort before the id `before`. */
export interface ActivityWindow extends TimeRangeUs {
  /** Empty to exclude the last microsecond. */
  readonly before: string;
  readonly rowsMax: number;
}

/** Reads the newest rows of a window. If the window is too large, the error satisfies `exceedsReadLimits`. */
export type ReadActivityWindow<T> = (window: ActivityWindow) => Promise<readonly T[]>;

export interface ActivitySource<T> {
  readonly read: ReadActivityWindow<T>;
  /**
   * For each contract, finds the version with `newer` newer versions in the time range, excluding its last microsecond.
   * Returns the latest of these times in epoch microseconds; 0 if no contract has enough versions.
   */
  findStart(span: TimeRangeUs, newer: number): Promise<number>;
  /** Number of rejected windows before `findStart` is called; more than 1 if it costs more than a rejected window. */
  readonly refusalsBeforeFindStart: number;
}

interface SearchBounds {
  /** Newest position, exclusive. */
  readonly from: ActivityPosition;
  readonly firstSpanUs: number;
  readonly max: number;
  readonly timeMaxMs: number;
}

/** After a rejection, windows grow by this factor, but at most halfway towards the rejected start. */
const GROWTH_AFTER_REFUSAL = 64;
/** Divides a rejected window if the start of the page is unknown. */
const DIVISOR = 16;
/** Allows for versions that have been superseded. */
const VERSIONS_PER_ROW = 1.5;

/**
 * Reads windows from newest to oldest until the page is full. The second window covers all time before the first,
 * because planning a query costs more than reading a quiet contract. After a rejected window, `findStart` determines
 * the length of the next window, so that busy contracts also fill a page with few queries.
 * @throws any error of the source, including the limit error if a single microsecond is too large
 */
export async function searchBackwards<T extends ActivityPosition>(
  source: ActivitySource<T>,
  { from, firstSpanUs, max, timeMaxMs }: SearchBounds,
): Promise<SearchPage<T>> {
  const startedAt = performance.now();
  const found: T[] = [];
  const spans = createSpans(firstSpanUs);
  let position = from;
  let refusals = 0;
  // Reads at least one window, so that every search makes progress.
  for (let hasRead = false; !hasRead || performance.now() - startedAt < timeMaxMs; ) {
    const { updatedUs: untilUs, id: before } = position;
    const sinceUs = Math.max(0, untilUs - Math.max(minSpanOf(before), spans.spanUs));
    const rowsMax = max + 1 - found.length;
    const rows = await readOrNull(source.read, { sinceUs, untilUs, before, rowsMax });
    if (rows === null) {
      refusals++;
      const find = () => source.findStart({ sinceUs, untilUs }, Math.ceil(rowsMax * VERSIONS_PER_ROW));
      // Called once, because windows must grow again if a filter matches few of the newest versions.
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

/** Chooses the length of the next window in microseconds. */
function createSpans(firstSpanUs: number) {
  let spanUs = firstSpanUs;
  let growth = Number.POSITIVE_INFINITY;
  // Start of the shortest rejected window. Ignores the window over all time, which takes 50 windows to approach.
  let refusedUs: number | null = null;
  return {
    get spanUs() {
      return spanUs;
    },
    /** @param startUs start of the page; null if unknown */
    refuse({ sinceUs, untilUs }: TimeRangeUs, startUs: number | null) {
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

/** A window that excludes its last microsecond must be at least one microsecond long. */
const minSpanOf = (before: string) => (before === '' ? 1 : 0);

/** @returns null if the window is too large and can be divided */
async function readOrNull<T>(read: ReadActivityWindow<T>, window: ActivityWindow): Promise<readonly T[] | null> {
  const isDivisible = window.untilUs - window.sinceUs > minSpanOf(window.before);
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
