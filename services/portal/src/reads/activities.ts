import { compareUuids, type QueryOptions, type QueryRows } from '@playline/stores';
import { type ActivityPosition, type SearchPage, searchBackwards, US_OF_MS } from './activity-search.ts';
import type { Span } from './messages.ts';
import { number, orNull, queryView, readPages, SEARCH_MAX_MS, text } from './query-view.ts';

export type { ActivityPosition } from './activity-search.ts';

export interface ContractName {
  readonly chain: string;
  /** In any case. */
  readonly contractAddress: string;
}

/** An empty filter matches everything. The span is of when activities were indexed, as in the chain API. */
export interface ActivitySearch extends Span {
  /** Epoch milliseconds. */
  readonly nowMs: number;
  /** Only activities of these contracts are found. */
  readonly contracts: readonly ContractName[];
  readonly type: string;
  /** Decimal digits of a token, which a sale may have among others. */
  readonly tokenId: string;
  readonly before?: ActivityPosition | undefined;
  /** 1 to 1,000; 100 when absent. */
  readonly activitiesMax?: number;
}

/** A token, or an amount of one. */
export interface ActivityAsset {
  readonly contractAddress: string;
  /** '' when the contract has only one token. */
  readonly tokenId: string;
  /** Decimal digits of the smallest unit; '' when a sale does not state it. */
  readonly amount: string;
}

export interface ActivityPayment {
  /** '' for the coin of the chain. */
  readonly contractAddress: string;
  /** Symbol of the coin of the chain. */
  readonly symbol: string;
  /** Decimal digits of the smallest unit, fees included. */
  readonly amount: string;
}

/** The latest version of an activity; times in epoch milliseconds, '' for unknown texts. */
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

/** A contract that is a fungible token. Its makers choose name and symbol; '' and null when unknown. */
export interface TokenLine extends ContractName {
  readonly name: string;
  readonly symbol: string;
  readonly decimals: number | null;
}

const DAY_MS = 86_400_000;
/** A month fills a page for most contracts. A token is searched in all of the time: the filter over token ids is cheap. */
const FIRST_SPAN_US = { any: 31 * DAY_MS * US_OF_MS, ofToken: Number.POSITIVE_INFINITY } as const;
/** The view returns at most one more. */
const ACTIVITIES_MAX = 1_000;
/** Each contract costs at least a granule of every part, and the view limits the rows that a query may read. */
const CONTRACTS_PER_QUERY = 32;
/** For so few contracts, finding where a page begins costs no more than a refused window. */
const CHEAP_STARTS_MAX = 4;

/** The newest order of pages; within a microsecond the order of ClickHouse for ids. */
export function byNewest(a: ActivityPosition, b: ActivityPosition): number {
  return a.updatedUs === b.updatedUs ? compareUuids(b.id, a.id) : b.updatedUs - a.updatedUs;
}

/**
 * Searches activities, newest version first, window by window, until the page is full or the time is over.
 * @throws PublicError VALIDATION_ERROR when a single microsecond exceeds the limits of a page
 */
export async function searchActivities(
  query: QueryRows,
  search: ActivitySearch,
  options: QueryOptions = {},
): Promise<ActivityPage> {
  const { nowMs, contracts, type, tokenId, activitiesMax = 100 } = search;
  if (contracts.length === 0) return { activities: [], next: null, searchedSinceMs: 0 };
  const batches = toBatches(contracts);
  return searchBackwards<ActivityLine>(
    {
      read: async (window) => {
        const found: ActivityLine[] = [];
        for (const batch of batches)
          for (const line of await queryWindow(query, { ...search, ...window, contracts: batch }, options))
            found.push(line);
        return found.sort(byNewest).slice(0, window.rowsMax);
      },
      findStart: async (span, newer) => {
        let latestUs = 0;
        for (const batch of batches) {
          const args = batch.map((contract) => ({ contract, type, since: span.sinceUs, until: span.untilUs, newer }));
          const columns = { us: number('max(updated_us)') };
          const viewQuery = { view: 'portal_activity_times', args, columns, rowsMax: 1 };
          for (const { us } of await queryView(query, viewQuery, options)) latestUs = Math.max(us, latestUs);
        }
        return latestUs;
      },
      refusalsBeforeFindStart: contracts.length <= CHEAP_STARTS_MAX ? 1 : 2,
    },
    {
      from: search.before ?? { updatedUs: (nowMs + DAY_MS) * US_OF_MS, id: '' },
      firstSpanUs: tokenId === '' ? FIRST_SPAN_US.any : FIRST_SPAN_US.ofToken,
      max: Math.min(Math.max(1, Math.trunc(activitiesMax)), ACTIVITIES_MAX),
      timeMaxMs: SEARCH_MAX_MS,
    },
  );
}

/** Names as the views expect them. */
const toNames = (contracts: readonly ContractName[]) =>
  contracts.map(({ chain, contractAddress }) => `${chain} ${contractAddress.toLowerCase()}`);

function toBatches(contracts: readonly ContractName[]): string[][] {
  const names = toNames(contracts);
  return Array.from({ length: Math.ceil(names.length / CONTRACTS_PER_QUERY) }, (_, at) =>
    names.slice(at * CONTRACTS_PER_QUERY, (at + 1) * CONTRACTS_PER_QUERY),
  );
}

interface WindowSearch extends Omit<ActivitySearch, 'contracts' | 'before'> {
  readonly contracts: readonly string[];
  readonly sinceUs: number;
  readonly untilUs: number;
  readonly before: string;
  readonly rowsMax: number;
}

async function queryWindow(query: QueryRows, search: WindowSearch, options: QueryOptions): Promise<ActivityLine[]> {
  const rows = await queryView(
    query,
    {
      view: 'portal_activities',
      args: {
        contracts: search.contracts,
        type: search.type,
        token: search.tokenId,
        before: search.before,
        since: search.sinceUs,
        until: search.untilUs,
        indexed_since: Math.max(0, search.sinceMs),
        indexed_until: search.untilMs,
      },
      columns: {
        chain: text('chain'),
        contractAddress: text('contract_address'),
        id: text('toString(id)'),
        updatedUs: number('toUnixTimestamp64Micro(updated_at)'),
        indexedMs: number('intDiv(toUnixTimestamp64Micro(indexed_at), 1000)'),
        members: text('members'),
      },
      tail: 'ORDER BY updated_at DESC, id DESC',
      rowsMax: search.rowsMax,
    },
    options,
  );
  return rows.map(({ members, ...row }) => ({
    ...row,
    updatedMs: Math.floor(row.updatedUs / US_OF_MS),
    ...toContent(objectOf(JSON.parse(`{${members}}`))),
  }));
}

type Json = Readonly<Record<string, unknown>>;
const objectOf = (value: unknown): Json => (typeof value === 'object' && value !== null ? (value as Json) : {});
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Reads members as the activity writer writes them. */
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

/** Activities of a search, newest first, one page at a time. @returns where the result was cut off */
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

/** The contracts that are fungible tokens. */
export async function readTokens(
  query: QueryRows,
  contracts: readonly ContractName[],
  options?: QueryOptions,
): Promise<TokenLine[]> {
  if (contracts.length === 0) return [];
  const viewQuery = {
    view: 'portal_tokens',
    args: { contracts: toNames(contracts) },
    columns: {
      chain: text('chain'),
      contractAddress: text('contract_address'),
      name: text("ifNull(name, '')"),
      symbol: text("ifNull(symbol, '')"),
      decimals: orNull(number('decimals')),
    },
    rowsMax: contracts.length,
  };
  return queryView<TokenLine>(query, viewQuery, options);
}
