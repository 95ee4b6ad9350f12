import type { Random } from '../../services/operator/src/simulate/random.ts';
import type { Question } from './page-client.ts';

/** Where a reader may begin to walk back. */
export interface Start {
  readonly question: Question;
  readonly cursor: string;
  /** Everything before this time lies behind the cursor, epoch microseconds. */
  readonly upTo: number;
}

const KEPT = 40;

/** The cursors that readers left lately, for those who walk back. */
export class Starts {
  readonly #kept: Start[] = [];

  offer(start: Start): void {
    this.#kept.push(start);
    if (this.#kept.length > KEPT) this.#kept.shift();
  }

  /** Null while nobody has read anything. */
  draw(random: Random): Start | null {
    return this.#kept.length === 0 ? null : random.pick(this.#kept);
  }
}
