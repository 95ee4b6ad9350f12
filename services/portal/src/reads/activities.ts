import { compareUuids } from '@playline/stores';
import {
  type ActivityPosition,
  type ActivityWindow,
  type SearchPage,
  searchBackwards,
  US_OF_MS,
} from './activity-search.ts';
import type { TimeRange } from './messages.ts';
import { number, orNull, type QueryView, type Row, readPages, SEARCH_MAX_MS, text } from './query-view.ts';

export type { ActivityPosition } from './activity-search.ts';

export interface ContractName {
  readonly chain: string;
  readonly contractAddress: string;
}

/** Empty filters match everything. As in the chain API, the time range applies to `indexed_at`. */
export interface ActivitySearch extends TimeRange {
  readonly nowMs: number;
  /** Restricts the search to these contracts. */
  readonly contracts: readonly ContractName[];
  readonly type: string;
  /** Decimal token id. Matches every sale that includes the token. */
  readonly tokenId: string;
  readonly before?: ActivityPosition | undefined;
  /** 1 to 1,000; defaults to 100. */
  readonly activitiesMax?: number;
}

export interface ActivityAsset {
  readonly contractAddress: string;
  /** Empty for fungible tokens. */
  readonly tokenId: string;
  /** Decimal amount in the smallest unit; empty if unknown. */
  readonly amount: string;
}

export interface ActivityPayment {
  /** Empty for the chain's native token. */
  readonly contractAddress: string;
  readonly symbol: string;
  /** Decimal amount in the smallest unit, including fees. */
  readonly amount: string;
}

/** The latest version of an activity. Times are in epoch milliseconds. Unknown strings are empty. */
export interface ActivityLine extends ActivityPosition, ContractName {
  readonly type: string;
  readonly updatedMs: number;
  readonly indexedMs: number;
  readonly from: string;
  readonly to: string;
  readonly assets: readonly ActivityAsset[];
  readonly payment: ActivityPayment | null;
  readonly transactionHash: string;
  readonly blockNumber: string;
}

export type ActivityPage = SearchPage<ActivityLine>;

const TOKEN_COLUMNS = {
  chain: text('chain'),
  contractAddress: text('contract_address'),
  name: text("ifNull(name, '')"),
  symbol: text("ifNull(symbol, '')"),
  decimals: orNull(number('decimals')),
};
/** A fungible token. Name and symbol come from the contract and cannot be trusted. */
export type TokenLine = Row<typeof TOKEN_COLUMNS>;

const DAY_MS = 86_400_000;
/** A month is enough to fill most pages. Token searches cover all time, because the token id index makes them cheap. */
const FIRST_WINDOW_US = { any: 31 * DAY_MS * US_OF_MS, ofToken: Number.POSITIVE_INFINITY } as const;
const ACTIVITIES_MAX = 1_000;
/** A query reads at least one granule per part for each contract, and the view limits the rows that a query reads. */
const CONTRACTS_PER_QUERY = 32;
/** For up to this many contracts, `findStart` costs no more than a rejected window. */
const CHEAP_STARTS_MAX = 4;

/** Sorts newest first. Within a microsecond, sorts by id as ClickHouse does. */
export function byNewest(a: ActivityPosition, b: ActivityPosition): number {
  return a.updatedUs === b.updatedUs ? compareUuids(b.id, a.id) : b.updatedUs - a.updatedUs;
}

/**
 * Searches activities from newest to oldest, one window at a time, until the page is full or time runs out.
 * @throws PublicError VALIDATION_ERROR if a single microsecond exceeds the read limits
 */
export async function searchActivities(queryView: QueryView, search: ActivitySearch): Promise<ActivityPage> {
  const { nowMs, contracts, type, tokenId, activitiesMax = 100 } = search;
  if (contracts.length === 0) return { activities: [], next: null, searchedSinceMs: 0 };
  const batches = toBatches(contracts);
  return searchBackwards<ActivityLine>(
    {
      read: async (window) => {
        const found: ActivityLine[] = [];
        for (const batch of batches)
          for (const line of await queryWindow(queryView, batch, search, window)) found.push(line);
        return found.sort(byNewest).slice(0, window.rowsMax);
      },
      findStart: async (range, newer) => {
        let latestUs = 0;
        for (const batch of batches) {
          const args = batch.map((contract) => ({ contract, type, since: range.sinceUs, until: range.untilUs, newer }));
          const columns = { us: number('max(updated_us)') };
          const [found] = await queryView({ view: 'portal_activity_times', args, columns, rowsMax: 1 });
          latestUs = Math.max(found?.us ?? 0, latestUs);
        }
        return latestUs;
      },
      rejectionsBeforeFindStart: contracts.length <= CHEAP_STARTS_MAX ? 1 : 2,
    },
    {
      from: search.before ?? { updatedUs: (nowMs + DAY_MS) * US_OF_MS, id: '' },
      firstWindowUs: tokenId === '' ? FIRST_WINDOW_US.any : FIRST_WINDOW_US.ofToken,
      max: Math.min(Math.max(1, Math.trunc(activitiesMax)), ACTIVITIES_MAX),
      timeMaxMs: SEARCH_MAX_MS,
    },
  );
}

const toNames = (contracts: readonly ContractName[]) =>
  contracts.map(({ chain, contractAddress }) => `${chain} ${contractAddress.toLowerCase()}`);

function toBatches(contracts: readonly ContractName[]): string[][] {
  const names = toNames(contracts);
  return Array.from({ length: Math.ceil(names.length / CONTRACTS_PER_QUERY) }, (_, index) =>
    names.slice(index * CONTRACTS_PER_QUERY, (index + 1) * CONTRACTS_PER_QUERY),
  );
}

const COLUMNS = {
  chain: text('chain'),
  contractAddress: text('contract_address'),
  id: text('toString(id)'),
  updatedUs: number('toUnixTimestamp64Micro(updated_at)'),
  indexedMs: number('intDiv(toUnixTimestamp64Micro(indexed_at), 1000)'),
  members: text('members'),
};

async function queryWindow(
  queryView: QueryView,
  contracts: readonly string[],
  { type, tokenId: token, sinceMs, untilMs }: ActivitySearch,
  { sinceUs: since, untilUs: until, before, rowsMax }: ActivityWindow,
): Promise<ActivityLine[]> {
  const indexed = { indexed_since: Math.max(0, sinceMs), indexed_until: untilMs };
  const args = { contracts, type, token, before, since, until, ...indexed };
  const tail = 'ORDER BY updated_at DESC, id DESC';
  const rows = await queryView({ view: 'portal_activities', args, columns: COLUMNS, tail, rowsMax });
  return rows.map(({ members, ...row }) => ({
    ...row,
    updatedMs: Math.floor(row.updatedUs / US_OF_MS),
    ...toContent(objectOf(JSON.parse(`{${members}}`))),
  }));
}

type Json = Readonly<Record<string, unknown>>;
const objectOf = (value: unknown): Json => (typeof value === 'object' && value !== null ? (value as Json) : {});
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Reads the fields from the JSON that the activity writer stores. */
function toContent(members: Json) {
  const [details, metadata] = [objectOf(members.details), objectOf(members.blockchain_metadata)];
  const { asset } = details;
  return {
    type: textOf(members.type),
    from: textOf(details.from),
    to: textOf(details.to),
    assets: (Array.isArray(asset) ? asset : [{ amount: details.amount, ...objectOf(asset) }]).map(toAsset),
    payment: details.payment === undefined ? null : toPayment(objectOf(details.payment)),
    transactionHash: textOf(metadata.transaction_hash),
    blockNumber: textOf(metadata.block_number),
  };
}

function toAsset(value: unknown): ActivityAsset {
  const { contract_address: address, token_id: tokenId, amount } = objectOf(value);
  return { contractAddress: textOf(address), tokenId: textOf(tokenId), amount: textOf(amount) };
}

function toPayment({ token, price_including_fees: amount }: Json): ActivityPayment {
  const { contract_address: address, symbol } = objectOf(token);
  return { contractAddress: textOf(address), symbol: textOf(symbol), amount: textOf(amount) };
}

/** Yields pages of activities, newest first. @returns the position at which the result was truncated, or null */
export function readManyActivities(
  activities: (search: ActivitySearch) => Promise<ActivityPage>,
  search: ActivitySearch,
  max: number,
): AsyncGenerator<readonly ActivityLine[], ActivityPosition | null> {
  return readPages(
    async (activitiesMax, before) => {
      const page = await activities({ ...search, activitiesMax, before });
      return { lines: page.activities, next: page.next };
    },
    { after: search.before, linesMax: max, perQuery: ACTIVITIES_MAX },
  );
}

export async function readTokens(queryView: QueryView, contracts: readonly ContractName[]): Promise<TokenLine[]> {
  if (contracts.length === 0) return [];
  const args = { contracts: toNames(contracts) };
  return queryView({ view: 'portal_tokens', args, columns: TOKEN_COLUMNS, rowsMax: contracts.length });
}
