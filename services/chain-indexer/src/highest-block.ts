/** A number that no node has reported for so long was a mistake, or the chain has become shorter. */
const FORGOTTEN_MS = 600_000;

/**
 * The highest block that any node of a chain has reported, and since when. Only a higher number is news: a node that
 * catches up reports other blocks all the time, and nodes behind one address take turns with theirs.
 */
export class HighestBlock {
  /** -1 before the first report. */
  private number = -1;
  private reportedAtMs: number;
  private roseAtMs: number;

  constructor(nowMs: number) {
    [this.reportedAtMs, this.roseAtMs] = [nowMs, nowMs];
  }

  /** When it last rose, or when the watch began. */
  get risenAtMs(): number {
    return this.roseAtMs;
  }

  /** @param number the highest block that a node has now */
  report(number: number, nowMs: number): void {
    // One wrong number must not hide all blocks below it for ever. That it is forgotten is no news.
    if (number < this.number && nowMs - this.reportedAtMs >= FORGOTTEN_MS) this.number = number;
    if (number < this.number) return;
    if (number > this.number) this.roseAtMs = nowMs;
    [this.number, this.reportedAtMs] = [number, nowMs];
  }
}
