import type { Random } from '../simulate/random.ts';
import type { Metadata } from './activity.ts';

/** Generates places in blocks, in ascending order. */
export interface Blocks {
  next(): Metadata;
}

/** Shares of the activities that start a new transaction, and a new block. */
const TRANSACTION_SHARE = 0.5;
const BLOCK_SHARE = 0.12;

/** Ascending blocks with several transactions each, with several logs each. */
export function createBlocks(random: Random): Blocks {
  let block = random.integer(15_000_000, 20_000_000);
  let [transaction, log, hash] = [0, -1, random.hex(64)];
  return {
    next: () => {
      if (random.chance(BLOCK_SHARE)) {
        block += random.integer(1, 3);
        [transaction, log, hash] = [0, -1, random.hex(64)];
      } else if (random.chance(TRANSACTION_SHARE)) {
        transaction++;
        hash = random.hex(64);
      }
      // Leaves room for logs of other kinds.
      log += random.integer(1, 3);
      return {
        transaction_hash: `0x${hash}`,
        block_number: String(block),
        transaction_index: String(transaction),
        log_index: String(log),
      };
    },
  };
}
