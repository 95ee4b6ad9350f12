import type { Random } from '@playline/testkit/random';
import type { FeedQuery } from './page-client.ts';

/** A position from which a reader may walk back. */
export interface Start {
  readonly query: FeedQuery;
  readonly cursor: string;
  /** Epoch microseconds. Everything before this time is before the cursor. */
  readonly upTo: number;
}

const STORED_MAX = 40;

/** The cursors that readers have left recently, for readers who walk back. */
export class Starts {
  readonly #kept: Start[] = [];

  offer(start: Start): void {
    this.#kept.push(start);
    if (this.#kept.length > STORED_MAX) this.#kept.shift();
  }

  /** Null when no reader has read anything yet. */
  draw(random: Random): Start | null {
    return this.#kept.length === 0 ? null : random.pick(this.#kept);
  }
}
