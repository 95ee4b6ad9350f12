import type { Random } from '@playline/testkit/random';
import type { FeedQuery } from './page-client.ts';

export interface StartCursor {
  readonly query: FeedQuery;
  readonly cursor: string;
  /** In microseconds since the epoch. Everything before this time is before the cursor. */
  readonly upTo: number;
}

const STORED_MAX = 40;

export class StartCursors {
  readonly #starts: StartCursor[] = [];

  offer(start: StartCursor): void {
    this.#starts.push(start);
    if (this.#starts.length > STORED_MAX) this.#starts.shift();
  }

  draw(random: Random): StartCursor | null {
    return this.#starts.length === 0 ? null : random.pick(this.#starts);
  }
}
