import type { ReaderParts } from './follower.ts';
import { isLast, type Question } from './page-client.ts';

/** A walk from somewhere back to the beginning. */
export interface BackWalk {
  readonly question: Question;
  /** Everything before this time was before the cursor that it began with. */
  readonly upTo: number;
  /** As they came: descending. */
  readonly rows: readonly { id: string; us: number }[];
  /** Greatest watermark that was published until the walk was over. */
  readonly watermark: number;
  /** Behind the empty page in front of the first: leads forwards again. */
  readonly cursor: string;
}

/**
 * Walks back by `previous_cursor` from where some reader stood to the beginning.
 * @returns null while no reader has left a cursor
 */
export async function walkBack({
  random,
  client,
  served,
  starts,
  watermarks,
  findings,
}: ReaderParts): Promise<BackWalk | null> {
  const start = starts.draw(random);
  if (start === null) return null;
  const { question, upTo } = start;
  const rows: { id: string; us: number }[] = [];
  let { cursor } = start;
  for (;;) {
    const page = await client.read(question, cursor);
    await served.note(question.chain, page);
    // Dies before it notes the cursor, and reads the same again.
    if (random.chance(0.06)) continue;
    const last = page.rows.at(-1);
    const bound = rows.at(-1)?.us ?? upTo;
    if (last !== undefined && last.us >= bound)
      findings.add('backwards', `${question.chain.name} ${last.us} came before ${bound}`);
    for (const { id, us } of page.rows.toReversed()) rows.push({ id, us });
    if (isLast(page, page.previous, cursor)) {
      served.walksBack++;
      const watermark = await watermarks.greatest(question.chain.partition);
      return { question, upTo, rows, watermark, cursor: page.next };
    }
    cursor = page.previous;
  }
}
