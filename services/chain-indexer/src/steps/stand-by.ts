import type { IndexProgressRecord } from '@playline/contracts';

/** Longer than the interval in which a working indexer publishes progress. */
const WAIT_MIN_MS = 60_000;
const WAIT_MAX_MS = 600_000;

const toMark = (progress: IndexProgressRecord | null): string =>
  progress === null ? '' : `${progress.block}/${progress.nextLog}/${progress.changedAt}`;

/**
 * A fenced indexer stands by: while the other one makes progress it waits, longer each time, and takes over when
 * progress stops. If both took the chain back at once, they would do so for ever.
 */
export class StandBy {
  private readonly nowMs: () => number;
  private mark: string | null = null;
  private waitMs = WAIT_MIN_MS;
  private untilMs = 0;

  constructor(nowMs: () => number) {
    this.nowMs = nowMs;
  }

  /** @param progress of the process that has the chain now */
  begin(progress: IndexProgressRecord | null): void {
    this.mark = toMark(progress);
    this.untilMs = this.nowMs() + this.waitMs;
    this.waitMs = Math.min(2 * this.waitMs, WAIT_MAX_MS);
  }

  /** @param readProgress reads what is published now */
  async isNeeded(readProgress: () => Promise<IndexProgressRecord | null>): Promise<boolean> {
    if (this.mark === null) return false;
    if (this.nowMs() < this.untilMs) return true;
    const progress = await readProgress();
    if (toMark(progress) === this.mark) {
      this.mark = null;
      return false;
    }
    this.begin(progress);
    return true;
  }
}
