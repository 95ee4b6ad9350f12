import type { MintRequestRecord, MintStateRecord } from '@playline/contracts';

type Attempt = Pick<MintRequestRecord, 'attemptId' | 'requestedAt'>;

/**
 * So many attempts at least are remembered, twice as many at most, some 100 bytes each; as many are read from the log at
 * a time. More than a signer can have pending: none that fails while the log is read is forgotten by then.
 */
const ATTEMPTS_MAX = 20_000;

export const toAttemptKey = ({ attemptId }: Pick<MintRequestRecord, 'attemptId'>): string => attemptId.toString('hex');

/**
 * The attempts of a signer that have failed. They stay failed when their requests are read again, however much later:
 * after offsets were moved back, or because a request was published twice. The latest ones are in memory. A request that
 * is not later than every forgotten one is looked up in the log.
 */
export class FailedAttempts {
  readonly #latest = new Map<string, number>();
  /** The latest request among the forgotten attempts. */
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

  /** Whether this attempt has failed and is remembered. */
  has(attempt: Pick<Attempt, 'attemptId'>): boolean {
    return this.#latest.has(toAttemptKey(attempt));
  }

  /**
   * @param readStates reads all states of the signer from the log
   * @returns the keys of those attempts that have failed and are not remembered
   */
  async forgottenAmong(
    attempts: readonly Attempt[],
    readStates: () => AsyncIterable<MintStateRecord>,
  ): Promise<ReadonlySet<string>> {
    const failed = new Set<string>();
    const unclear = attempts.filter((each) => !this.has(each) && each.requestedAt <= this.#forgottenUntil);
    for (const attempt of unclear.sort((one, other) => one.requestedAt - other.requestedAt)) {
      if (!this.#window.covers(attempt.requestedAt)) await this.#readWindow(attempt.requestedAt, readStates());
      if (this.#window.attempts.has(toAttemptKey(attempt))) failed.add(toAttemptKey(attempt));
    }
    return failed;
  }

  /** Requests that are read again come more or less in the order of their times, so the next ones are read as well. */
  async #readWindow(from: number, states: AsyncIterable<MintStateRecord>): Promise<void> {
    const window = new ForgottenWindow(from, Number.POSITIVE_INFINITY);
    // An attempt that is forgotten while the log is read must be in the window too.
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

/** All forgotten attempts that were requested from `from` to before `until`. */
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
    // All of the first millisecond are kept, however many they are.
    this.#until = Math.max(times[ATTEMPTS_MAX]!, this.#from + 1);
    for (const [key, time] of this.attempts) if (time >= this.#until) this.attempts.delete(key);
  }
}
