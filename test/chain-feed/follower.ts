import type { Random } from '@playline/testkit/random';
import type { Findings } from './findings.ts';
import { type FeedQuery, isLast, type PageClient, type ServedPage } from './page-client.ts';
import type { Served } from './served.ts';
import type { Starts } from './starts.ts';
import type { WatermarkWatch } from './watermark-watch.ts';

/** Share of pages at which a reader dies, and number of pages after which it stores its cursor. */
const DEATH_SHARE = 0.06;
const NOTED_SHARE = 0.7;

/** A moment at which a reader had come to the end of the feed. */
export interface Arrival {
  /** The watermark of its partition, read before the request of the empty page. Everything up to it has been read. */
  readonly watermark: number;
  /** Number of rows in the walk at that moment. */
  readonly count: number;
}

/** All rows of one reader since it began. Rows that it lost by dying and then read again are listed once. */
export interface Walk {
  readonly query: FeedQuery;
  readonly rows: { id: string; us: number }[];
  readonly arrivals: Arrival[];
}

export interface ReaderParts {
  readonly random: Random;
  readonly client: PageClient;
  readonly served: Served;
  readonly watermarks: WatermarkWatch;
  readonly findings: Findings;
  readonly starts: Starts;
  /** Chooses what a new reader follows. */
  readonly draw: () => FeedQuery;
}

/**
 * A replica that keeps following `next_cursor`. It dies from time to time, and continues from the cursor that it stored
 * last.
 */
export class Follower {
  readonly #parts: ReaderParts;
  #walk: Walk;
  #cursor: string | null = null;
  /** The content of its state file. */
  #noted: { cursor: string | null; count: number; arrivals: number } = { cursor: null, count: 0, arrivals: 0 };
  readonly walks: Walk[];
  deaths = 0;

  constructor(parts: ReaderParts, query: FeedQuery = parts.draw()) {
    this.#parts = parts;
    this.#walk = { query, rows: [], arrivals: [] };
    this.walks = [this.#walk];
  }

  /** Starts a separate walk from the cursor of another reader. */
  startAt(query: FeedQuery, cursor: string | null): void {
    this.#walk = { query, rows: [], arrivals: [] };
    this.walks.push(this.#walk);
    this.#cursor = cursor;
    this.#noted = { cursor, count: 0, arrivals: 0 };
  }

  /** Reads one page. @returns whether it was the last one */
  async step(): Promise<boolean> {
    const { random, client, served, watermarks } = this.#parts;
    const { query, rows, arrivals } = this.#walk;
    const [losses, watermark] = [watermarks.losses, await watermarks.read(query.chain.partition)];
    const page = await client.read(query, this.#cursor);
    await served.note(query.chain, page);
    if (random.chance(DEATH_SHARE)) return this.#die();
    this.#take(page);
    const isEnd = isLast(page, page.next, this.#cursor);
    if (isEnd && (await page.isFresh()) && watermark !== null && watermarks.losses === losses)
      arrivals.push({ watermark, count: rows.length });
    this.#cursor = page.next;
    if (random.chance(NOTED_SHARE))
      this.#noted = { cursor: this.#cursor, count: rows.length, arrivals: arrivals.length };
    return isEnd;
  }

  #take(page: ServedPage): void {
    const { query, rows } = this.#walk;
    const before = rows.at(-1);
    const first = page.rows[0];
    if (before !== undefined && first !== undefined && first.us <= before.us)
      this.#parts.findings.add('in order', `${query.chain.name} ${first.us} is behind ${before.us}`);
    for (const { id, us } of page.rows) rows.push({ id, us });
    const upTo = first?.us ?? (rows.at(-1)?.us ?? -1) + 1;
    this.#parts.starts.offer({ query, cursor: page.previous, upTo });
  }

  /** Loses what was in memory. Rows since the stored cursor will be read again. */
  #die(): false {
    this.deaths++;
    const { rows, arrivals } = this.#walk;
    rows.length = this.#noted.count;
    arrivals.length = this.#noted.arrivals;
    this.#cursor = this.#noted.cursor;
    return false;
  }

  /** Starts from the beginning with another query. */
  begin(): void {
    this.startAt(this.#parts.draw(), null);
  }

  /** Reads on until the watermark is certainly passed. */
  async finish(): Promise<void> {
    const before = this.#walk.arrivals.length;
    while (this.#walk.arrivals.length <= before) await this.step();
  }
}
