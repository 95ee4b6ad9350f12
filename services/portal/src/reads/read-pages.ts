/** A search for one page that has found too little by then says how far it came. */
export const SEARCH_MAX_MS = 4_000;

/** One page of a long answer. */
interface AnswerPage<L, P> {
  readonly lines: readonly L[];
  /** Where the next page begins; null when there is none. */
  readonly next: P | null;
}

/** Where a long answer begins, and how much is read of it. */
interface PagesOptions<P> {
  readonly place?: P | undefined;
  /** So many lines at most. */
  readonly linesMax: number;
  /** So many lines of one question at most. The first question asks for `FIRST_LINES`. */
  readonly perQuestion: number;
}

/** As many as a page shows: the first lines of a file come as soon as a page, and the next questions are larger. */
export const FIRST_LINES = 100;

/**
 * Reads a long answer, a page of it at a time, however long it takes: each page is a question of its own.
 * @param readPage reads so many lines at most, behind a place or from the beginning
 * @returns where it ended, when there may be more
 */
export async function* readPages<L, P>(
  readPage: (linesMax: number, place: P | undefined) => Promise<AnswerPage<L, P>>,
  { place: first, linesMax, perQuestion }: PagesOptions<P>,
): AsyncGenerator<readonly L[], P | null> {
  let place = first;
  let most = Math.min(FIRST_LINES, perQuestion);
  for (let left = linesMax; left > 0; most = perQuestion) {
    const { lines, next } = await readPage(Math.min(left, most), place);
    left -= lines.length;
    yield lines;
    if (next === null) return null;
    place = next;
  }
  return place ?? null;
}

/** The page of a question that says nothing of the next one: when it is full, that begins behind its last line. */
export function toPage<L>(lines: readonly L[], linesMax: number): AnswerPage<L, L> {
  return { lines, next: lines.length < linesMax ? null : (lines.at(-1) ?? null) };
}
