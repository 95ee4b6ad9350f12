import type { Random } from '@playline/testkit/random';
import type { Findings } from './findings.ts';
import type { PageChecks } from './page-checks.ts';
import { type FeedQuery, isLast, type PageClient, type ServedPage } from './page-client.ts';
import type { StartCursors } from './start-cursors.ts';
import type { WatermarkWatch } from './watermark-watch.ts';

/** Fractions of pages after which a reader crashes, or stores its cursor. */
const CRASH_FRACTION = 0.06;
const STORED_FRACTION = 0.7;

export interface Arrival {
  /** The partition's watermark before the empty page was requested. The reader must have everything up to it. */
  readonly watermark: number;
  readonly count: number;
}

/** All rows that a reader has read. Rows lost in a crash and read again are listed once. */
export interface Walk {
  readonly query: FeedQuery;
  readonly rows: { id: string; us: number }[];
  readonly arrivals: Arrival[];
}

export interface ReaderParts {
  readonly random: Random;
  readonly client: PageClient;
  readonly pageChecks: PageChecks;
  readonly watermarks: WatermarkWatch;
  readonly findings: Findings;
  readonly starts: StartCursors;
  readonly draw: () => FeedQuery;
}

/** A replica that follows `next_cursor`, sometimes crashes, and continues from its stored cursor. */
export class Follower {
  readonly #parts: ReaderParts;
  #walk: Walk;
  #cursor: string | null = null;
  #stored: { cursor: string | null; count: number; arrivals: number } = { cursor: null, count: 0, arrivals: 0 };
  readonly walks: Walk[];
  crashes = 0;

  constructor(parts: ReaderParts, query: FeedQuery = parts.draw()) {
    this.#parts = parts;
    this.#walk = { query, rows: [], arrivals: [] };
    this.walks = [this.#walk];
  }

  startAt(query: FeedQuery, cursor: string | null): void {
    this.#walk = { query, rows: [], arrivals: [] };
    this.walks.push(this.#walk);
    this.#cursor = cursor;
    this.#stored = { cursor, count: 0, arrivals: 0 };
  }

  /** Reads one page. @returns true for the last page */
  async step(): Promise<boolean> {
    const { random, client, pageChecks, watermarks } = this.#parts;
    const { query, rows, arrivals } = this.#walk;
    const [losses, watermark] = [watermarks.losses, await watermarks.read(query.chain.partition)];
    const page = await client.read(query, this.#cursor);
    await pageChecks.check(query.chain, page);
    if (random.chance(CRASH_FRACTION)) return this.#crash();
    this.#append(page);
    const isEnd = isLast(page, page.next, this.#cursor);
    if (isEnd && (await page.isFresh()) && watermark !== null && watermarks.losses === losses)
      arrivals.push({ watermark, count: rows.length });
    this.#cursor = page.next;
    if (random.chance(STORED_FRACTION))
      this.#stored = { cursor: this.#cursor, count: rows.length, arrivals: arrivals.length };
    return isEnd;
  }

  #append(page: ServedPage): void {
    const { query, rows } = this.#walk;
    const before = rows.at(-1);
    const first = page.rows[0];
    if (before !== undefined && first !== undefined && first.us <= before.us)
      this.#parts.findings.add('in order', `${query.chain.name} ${first.us} was returned after ${before.us}`);
    for (const { id, us } of page.rows) rows.push({ id, us });
    const upTo = first?.us ?? (rows.at(-1)?.us ?? -1) + 1;
    this.#parts.starts.offer({ query, cursor: page.previous, upTo });
  }

  #crash(): false {
    this.crashes++;
    const { rows, arrivals } = this.#walk;
    rows.length = this.#stored.count;
    arrivals.length = this.#stored.arrivals;
    this.#cursor = this.#stored.cursor;
    return false;
  }

  restart(): void {
    this.startAt(this.#parts.draw(), null);
  }

  async finish(): Promise<void> {
    const before = this.#walk.arrivals.length;
    while (this.#walk.arrivals.length <= before) await this.step();
  }
}
