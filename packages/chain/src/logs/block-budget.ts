/** Maximum activities per contract and block from multi-token logs. Large mints have 10,000 tokens. */
const CONTRACT_ITEMS_MAX = 10_000;
/** Maximum activities per second from all `ConsecutiveTransfer` logs: half of one indexer's capacity. */
const RANGE_ITEMS_PER_SECOND = 5_000;
const RANGE_ITEMS_PER_BLOCK_MIN = 500;
const RANGE_ITEMS_PER_BLOCK_MAX = 20_000;

export interface BlockLimits {
  readonly itemsPerContract: number;
  /** @param seconds since the previous block */
  readonly itemsFromRanges: (seconds: number) => number;
}

export const BLOCK_LIMITS: BlockLimits = {
  itemsPerContract: CONTRACT_ITEMS_MAX,
  itemsFromRanges: (seconds) =>
    Math.min(RANGE_ITEMS_PER_BLOCK_MAX, Math.max(RANGE_ITEMS_PER_BLOCK_MIN, RANGE_ITEMS_PER_SECOND * seconds)),
};

export interface MultiTokenLog {
  readonly logIndex: number;
  readonly contract: string;
  readonly tokens: bigint;
  readonly isRange: boolean;
}

/**
 * Returns the indexes of the logs to omit. Either all or none of a log's activities are indexed. Contracts with the
 * fewest tokens have priority. @param logs the block's logs in order, so that every reader omits the same logs
 */
export function findOverBudget(
  logs: readonly MultiTokenLog[],
  { itemsPerContract, itemsFromRanges }: BlockLimits,
  seconds: number,
): ReadonlySet<number> {
  const omitted = new Set<number>();
  const tokensByContract = new Map<string, bigint>();
  const ranges: MultiTokenLog[] = [];
  for (const log of logs) {
    const count = (tokensByContract.get(log.contract) ?? 0n) + log.tokens;
    if (count > itemsPerContract) {
      omitted.add(log.logIndex);
      continue;
    }
    tokensByContract.set(log.contract, count);
    if (log.isRange) ranges.push(log);
  }
  const contracts = [...Map.groupBy(ranges, ({ contract }) => contract).values()].map((rangesOfContract) => {
    return { rangesOfContract, tokens: rangesOfContract.reduce((sum, { tokens }) => sum + tokens, 0n) };
  });
  let remaining = BigInt(itemsFromRanges(seconds));
  for (const { rangesOfContract } of contracts.sort((one, other) => Number(one.tokens - other.tokens)))
    for (const { logIndex, tokens } of rangesOfContract)
      if (tokens <= remaining) remaining -= tokens;
      else omitted.add(logIndex);
  return omitted;
}
