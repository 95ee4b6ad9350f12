/** What makes a feed of its own; null for any. */
interface FeedFilters {
  readonly contractAddress: string | null;
  readonly type: string | null;
}

/**
 * Names the feed of a filter: chain, contract (`0x` and 40 hexadecimal digits in lower case) and type, or `*` for any. The
 * last two have no spaces, so no two feeds have one name. Tables are filled with the same words when they are deployed.
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
