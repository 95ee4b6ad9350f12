/** A search for one page that has found too little by then says how far it came. */
export const SEARCH_MAX_MS = 4_000;

/** One page of a long answer. */
interface AnswerPage<L, P> {
  readonly lines: readonly L[];
  /** Where the next page begins; null when there is none. */
  readonly next: P | null;
}

/**
 * Reads a long answer, a page of it at a time, however long it takes: each page is a question of its own.
 * @param readPage reads so many lines at most, behind a place or from the beginning
 * @param from where to begin, and how many lines to read at most
 * @returns where it ended, when there may be more
 */
export async function* readPages<L, P>(
  readPage: (linesMax: number, place: P | undefined) => Promise<AnswerPage<L, P>>,
  { place: first, linesMax }: { readonly place?: P | undefined; readonly linesMax: number },
): AsyncGenerator<readonly L[], P | null> {
  let place = first;
  for (let left = linesMax; left > 0; ) {
    const { lines, next } = await readPage(left, place);
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
