/** Value of `chain.index-progress.v1`, keyed by `chain`: the last record of a chain is true. Hashes have 32 bytes. */
export interface IndexProgressRecord {
  /** Name of the chain. */
  chain: string;
  /** Everything before it is indexed. */
  block: number;
  /** Of `block`. */
  hash: Buffer;
  /** Of `block` what stands before this log is indexed; null: all of it. */
  nextLog: number | null;
  /** Tells the chain from one that was made anew under its name. */
  genesisHash: Buffer;
  /** Epoch milliseconds. */
  changedAt: number;
}
