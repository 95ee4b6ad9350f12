import type { MintRequestRecord, MintStateRecord } from '@playline/contracts';

type Attempt = Pick<MintRequestRecord, 'attemptId' | 'requestedAt'>;

/** At least this many and at most twice as many attempts are in memory, more than a signer can have pending. */
const ATTEMPTS_MAX = 20_000;

export const toAttemptKey = ({ attemptId }: Pick<MintRequestRecord, 'attemptId'>): string => attemptId.toString('hex');

/** Recognises failed attempts when their requests are read again. Old attempts are read from the log. */
export class FailedAttempts {
  readonly #latest = new Map<string, number>();
  /** The time of the latest forgotten request. */
  #forgottenUntil = Number.NEGATIVE_INFINITY;
  #window = new ForgottenWindow(0, 0);

  add(attempt: Attempt): void {
    this.#latest.set(toAttemptKey(attempt), attempt.requestedAt);
    if (this.#latest.size <= 2 * ATTEMPTS_MAX) return;
    for (const [key, requestedAt] of this.#latest) {
      if (this.#latest.size === ATTEMPTS_MAX) return;
      this.#latest.delete(key);
      this.#forgottenUntil = Math.max(this.#forgottenUntil, requestedAt);
      this.#window.add(key, requestedAt);
    }
  }

  has(attempt: Pick<Attempt, 'attemptId'>): boolean {
    return this.#latest.has(toAttemptKey(attempt));
  }

  /** @returns the keys of failed attempts that are no longer in memory */
  async findForgotten(
    attempts: readonly Attempt[],
    readStates: () => AsyncIterable<MintStateRecord>,
  ): Promise<ReadonlySet<string>> {
    const failed = new Set<string>();
    const candidates = attempts.filter((each) => !this.has(each) && each.requestedAt <= this.#forgottenUntil);
    for (const attempt of candidates.sort((one, other) => one.requestedAt - other.requestedAt)) {
      if (!this.#window.covers(attempt.requestedAt)) await this.#readWindow(attempt.requestedAt, readStates());
      if (this.#window.attempts.has(toAttemptKey(attempt))) failed.add(toAttemptKey(attempt));
    }
    return failed;
  }

  /** Also reads later attempts, because requests that are read again are roughly in order. */
  async #readWindow(from: number, states: AsyncIterable<MintStateRecord>): Promise<void> {
    const window = new ForgottenWindow(from, Number.POSITIVE_INFINITY);
    // Attempts that are forgotten during the read must be added to the window.
    this.#window = window;
    try {
      for await (const state of states)
        if (state.status === 'failed') window.add(toAttemptKey(state), state.requestedAt);
    } catch (fault) {
      this.#window = new ForgottenWindow(0, 0);
      throw fault;
    }
  }
}

/** Forgotten attempts that were requested at or after `from` and before `until`. */
class ForgottenWindow {
  readonly attempts = new Map<string, number>();
  readonly #from: number;
  #until: number;

  constructor(from: number, until: number) {
    this.#from = from;
    this.#until = until;
  }

  covers(requestedAt: number): boolean {
    return requestedAt >= this.#from && requestedAt < this.#until;
  }

  add(attempt: string, requestedAt: number): void {
    if (!this.covers(requestedAt)) return;
    this.attempts.set(attempt, requestedAt);
    if (this.attempts.size <= 2 * ATTEMPTS_MAX || this.#until === this.#from + 1) return;
    const times = [...this.attempts.values()].sort((one, other) => one - other);
    // The window always contains all attempts of its first millisecond.
    this.#until = Math.max(times[ATTEMPTS_MAX]!, this.#from + 1);
    for (const [key, time] of this.attempts) if (time >= this.#until) this.attempts.delete(key);
  }
}
