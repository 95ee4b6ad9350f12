/** What one process has let in for one id since it last said so. */
export interface Charge {
  readonly id: string;
  /** The units as the time in which they are allowed again; 0 only asks. */
  readonly costMs: number;
}

/** Buckets that all processes have in common. Each is kept as the moment at which it is full. */
export interface SharedBalances {
  /**
   * Charges every id once, debt or not.
   * @returns for each charge, in order, the milliseconds until that bucket is full
   * @throws when the store cannot answer; the charges may have been made all the same
   */
  charge(charges: readonly Charge[]): Promise<number[]>;
}
