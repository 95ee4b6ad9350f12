/**
 * Most activities of one contract in one block that come from logs with several tokens (`TransferBatch`,
 * `ConsecutiveTransfer`). The largest mints that are common have 10,000 tokens, and a contract that stores balances can
 * move about 3,000 in a block.
 */
const CONTRACT_ITEMS_MAX = 10_000;
/**
 * Most activities of all `ConsecutiveTransfer` of a block, for each second since the block before it: they cost the same
 * gas for any number of tokens, so the gas of a block does not bound them. Half of what one indexer can do (10,800 a
 * second), so that it keeps up with a chain whose every block is full of them. Items of a `TransferBatch` are paid for
 * one by one and do not count, or a block could be filled to suppress those of others.
 */
const RANGES_PER_SECOND = 5_000;
/** Of a block with the same time as the one before. With ten blocks a second one indexer still keeps up. */
const RANGES_OF_BLOCK_MIN = 500;
/** Of a block after a pause. A few seconds of work for all services together. */
const RANGES_OF_BLOCK_MAX = 20_000;

/** Most activities of the logs of a block that report several tokens. */
export interface BlockLimits {
  readonly ofContract: number;
  /** Of all `ConsecutiveTransfer`. @param seconds since the block before */
  readonly ofRanges: (seconds: number) => number;
}

export const BLOCK_LIMITS: BlockLimits = {
  ofContract: CONTRACT_ITEMS_MAX,
  ofRanges: (seconds) => Math.min(RANGES_OF_BLOCK_MAX, Math.max(RANGES_OF_BLOCK_MIN, RANGES_PER_SECOND * seconds)),
};

/** A log that reports several tokens. */
export interface ManyTokens {
  readonly logIndex: number;
  readonly contract: string;
  readonly tokens: bigint;
  /** Whether it is a `ConsecutiveTransfer`. */
  readonly isRange: boolean;
}

/**
 * Finds the logs of a block whose activities are not taken, by log index. All activities of a log are taken, or none.
 * Ranges of the contracts with the fewest tokens come first, so a range is suppressed only by smaller ones that use up
 * the limit of the block.
 * @param logs all of the block, in order: then every reader of the chain takes the same ones
 */
export function findOverBudget(
  logs: readonly ManyTokens[],
  { ofContract, ofRanges }: BlockLimits,
  seconds: number,
): ReadonlySet<number> {
  const over = new Set<number>();
  const takenOf = new Map<string, bigint>();
  const ranges: ManyTokens[] = [];
  for (const log of logs) {
    const taken = (takenOf.get(log.contract) ?? 0n) + log.tokens;
    if (taken > ofContract) {
      over.add(log.logIndex);
      continue;
    }
    takenOf.set(log.contract, taken);
    if (log.isRange) ranges.push(log);
  }
  const contracts = [...Map.groupBy(ranges, ({ contract }) => contract).values()].map((own) => {
    return { own, tokens: own.reduce((sum, { tokens }) => sum + tokens, 0n) };
  });
  let left = BigInt(ofRanges(seconds));
  for (const { own } of contracts.sort((one, other) => Number(one.tokens - other.tokens)))
    for (const { logIndex, tokens } of own)
      if (tokens <= left) left -= tokens;
      else over.add(logIndex);
  return over;
}
