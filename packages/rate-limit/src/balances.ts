/** What one process has allowed for one id since its last report. */
export interface Charge {
  readonly id: string;
  /** The units as milliseconds: the time in which the policy allows so many again. 0 only asks. */
  readonly costMs: number;
}

/** Buckets that all processes share. A bucket is stored as the moment at which it is full again. */
export interface SharedBalances {
  /**
   * Charges every id once, also below zero.
   * @returns for each charge, in order, the milliseconds until that bucket is full
   * @throws when the store does not answer; the charges may have been made all the same
   */
  charge(charges: readonly Charge[]): Promise<number[]>;
}
