import type { ReaderParts } from './follower.ts';
import { type FeedQuery, isLast } from './page-client.ts';

export interface BackWalk {
  readonly query: FeedQuery;
  /** The time of the walk's first cursor. The walk covers everything before this time. */
  readonly upTo: number;
  readonly rows: readonly { id: string; us: number }[];
  readonly watermark: number;
  readonly cursor: string;
}

/** Walks back with `previous_cursor` from a reader's cursor. @returns null if no reader has stored a cursor yet */
export async function walkBack({
  random,
  client,
  pageChecks,
  starts,
  watermarks,
  findings,
}: ReaderParts): Promise<BackWalk | null> {
  const start = starts.draw(random);
  if (start === null) return null;
  const { query, upTo } = start;
  const rows: { id: string; us: number }[] = [];
  let { cursor } = start;
  for (;;) {
    const page = await client.read(query, cursor);
    await pageChecks.check(query.chain, page);
    // Simulates a reader that crashes before it stores the cursor, and reads the same page again.
    if (random.chance(0.06)) continue;
    const last = page.rows.at(-1);
    const bound = rows.at(-1)?.us ?? upTo;
    if (last !== undefined && last.us >= bound)
      findings.add('backward reads', `${query.chain.name} ${last.us} follows ${bound}`);
    for (const { id, us } of page.rows.toReversed()) rows.push({ id, us });
    if (isLast(page, page.previous, cursor)) {
      pageChecks.backwardWalks++;
      const watermark = await watermarks.readGreatest(query.chain.partition);
      return { query, upTo, rows, watermark, cursor: page.next };
    }
    cursor = page.previous;
  }
}
