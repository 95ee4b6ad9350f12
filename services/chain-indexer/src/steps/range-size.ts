const GROWTH = 1.25;
/** One may be a moment of the node's; two say that it takes too long. */
const LATES_TO_HALVE = 2;
/** To find out again costs as long as two answers may take. */
const LATE_REMEMBERED_MS = 600_000;

/** How many blocks a node is asked for at once: fewer where that is too much, and more again where it passes. */
export class RangeSize {
  private readonly most: number;
  private readonly nowMs: () => number;
  private size: number;
  private asked = Number.POSITIVE_INFINITY;
  /** Since a range has passed. */
  private lates = 0;
  private lateAtMs = Number.NEGATIVE_INFINITY;
  /** So many were not late. */
  private inTime = Number.POSITIVE_INFINITY;

  /** @param most blocks at once @param nowMs a clock that never goes back */
  constructor(most: number, nowMs: () => number) {
    this.most = most;
    this.nowMs = nowMs;
    this.size = most;
  }

  get blocks(): number {
    return this.size;
  }

  /** Nobody can be asked for less. */
  get isSmallest(): boolean {
    return this.size === 1;
  }

  /** A node is asked for so many blocks: at the end of a chain fewer than may be. */
  ask(blocks: number): void {
    this.asked = blocks;
  }

  halve(): void {
    this.size = Math.max(1, Math.floor(Math.min(this.size, this.asked) / 2));
  }

  /**
   * An answer about the blocks that were asked for did not come in time. Nobody else says that these are too many, and the
   * same question again would be late again.
   * @returns whether that is to be taken for too much
   */
  tellLate(): boolean {
    this.lates++;
    if (this.lates < LATES_TO_HALVE) return false;
    this.inTime = Math.max(1, Math.floor(Math.min(this.size, this.asked) / 2));
    this.lateAtMs = this.nowMs();
    return true;
  }

  /** So many blocks were read. */
  pass(blocks: number): void {
    this.lates = 0;
    if (blocks < this.size) return;
    const isRemembered = this.nowMs() - this.lateAtMs < LATE_REMEMBERED_MS;
    const most = isRemembered ? Math.min(this.most, this.inTime) : this.most;
    this.size = Math.min(most, Math.ceil(this.size * GROWTH));
  }
}
