/** Activities of one contract in a block from logs with several tokens. Large mints have 10,000 tokens. */
const CONTRACT_ITEMS_MAX = 10_000;
/**
 * Activities of all `ConsecutiveTransfer` of a block per second, whatever their gas: half of what one indexer does.
 */
const RANGES_PER_SECOND = 5_000;
const RANGES_OF_BLOCK_MIN = 500;
const RANGES_OF_BLOCK_MAX = 20_000;

export interface BlockLimits {
  readonly ofContract: number;
  /** @param seconds since the previous block */
  readonly ofRanges: (seconds: number) => number;
}

export const BLOCK_LIMITS: BlockLimits = {
  ofContract: CONTRACT_ITEMS_MAX,
  ofRanges: (seconds) => Math.min(RANGES_OF_BLOCK_MAX, Math.max(RANGES_OF_BLOCK_MIN, RANGES_PER_SECOND * seconds)),
};

export interface ManyTokens {
  readonly logIndex: number;
  readonly contract: string;
  readonly tokens: bigint;
  readonly isRange: boolean;
}

/**
 * Log indexes whose activities are left out: all activities of a log are taken or none. Contracts with the fewest
 * tokens come first. @param logs all of the block, in order, so that every reader takes the same ones
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
