/** The filters that have their own feeds; null for any value. */
interface FeedFilters {
  readonly contractAddress: string | null;
  readonly type: string | null;
}

/**
 * Names the feed of a filter: chain, contract (`0x` and 40 hexadecimal digits in lower case) and type, or `*` for any.
 * The last two have no spaces, so names are unique. The statements that fill new tables use the same format.
 */
export const toFeedName = (chain: string, { contractAddress, type }: FeedFilters): string =>
  `${chain} ${contractAddress ?? '*'} ${type ?? '*'}`;

/** The four feeds that an activity is in: of everything, of its contract, of its type, of both. */
export function feedNamesOf(activity: { chain: string; contractAddress: string; type: string }): string[] {
  const { chain, contractAddress, type } = activity;
  return [null, contractAddress].flatMap((contract) =>
    [null, type].map((own) => toFeedName(chain, { contractAddress: contract, type: own })),
  );
}
