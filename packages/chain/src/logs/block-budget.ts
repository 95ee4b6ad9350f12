import type { ChainLog } from '../node.ts';

/**
 * Most activities of one contract in one block that come from logs with several tokens (`TransferBatch`,
 * `ConsecutiveTransfer`). The largest mints that are common have 10,000 tokens, and a contract that stores balances can
 * move about 3,000 in a block.
 */
export const CONTRACT_ITEMS_MAX = 10_000;
/**
 * Most activities of all `ConsecutiveTransfer` of one block: they cost the same gas for any number of tokens, so a
 * limit for each contract alone ends nothing. A few seconds of work for all services together. Items of a
 * `TransferBatch` are paid for one by one and do not count, or a block could be filled to suppress those of others.
 */
export const RANGES_OF_BLOCK_MAX = 20_000;
/** A contract with no more items in the block has a share of its own, so that others with large ranges cannot displace it. */
const SMALL_RANGES = 500;
/** Most activities from such shares: those of 40 contracts. Contracts cost little, so their number needs a limit too. */
const SMALL_RANGES_OF_BLOCK_MAX = 20_000;

interface Limits {
  readonly ofContract: number;
  readonly ofRanges: number;
  readonly ofSmallRanges: number;
}

/**
 * The activities that may still be taken from logs of a block. Logs must come in order, all logs of a block from its
 * first one on: then every reader of the chain takes the same ones.
 */
export class BlockBudget {
  private blockHash = '';
  private logIndex = -1;
  private rangesTaken = 0n;
  private smallTaken = 0n;
  private readonly takenOf = new Map<string, bigint>();
  private readonly limits: Limits;

  constructor({
    ofContract = CONTRACT_ITEMS_MAX,
    ofRanges = RANGES_OF_BLOCK_MAX,
    ofSmallRanges = SMALL_RANGES_OF_BLOCK_MAX,
  }: Partial<Limits> = {}) {
    this.limits = { ofContract, ofRanges, ofSmallRanges };
  }

  /** Takes all activities of a log from the budget, or none. @returns whether they were taken */
  take({ blockHash, logIndex, address }: ChainLog, tokens: bigint, isRange: boolean): boolean {
    // A block is read again from its start when it could not be published.
    const isNewReading = blockHash !== this.blockHash || logIndex <= this.logIndex;
    [this.blockHash, this.logIndex] = [blockHash, logIndex];
    if (isNewReading) {
      this.rangesTaken = 0n;
      this.smallTaken = 0n;
      this.takenOf.clear();
    }
    const ofContract = (this.takenOf.get(address) ?? 0n) + tokens;
    if (ofContract > this.limits.ofContract || (isRange && !this.takeRange(tokens, ofContract))) return false;
    this.takenOf.set(address, ofContract);
    return true;
  }

  private takeRange(tokens: bigint, ofContract: bigint): boolean {
    if (this.rangesTaken + tokens <= this.limits.ofRanges) this.rangesTaken += tokens;
    else if (ofContract <= SMALL_RANGES && this.smallTaken + tokens <= this.limits.ofSmallRanges)
      this.smallTaken += tokens;
    else return false;
    return true;
  }
}
