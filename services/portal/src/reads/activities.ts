import type { QueryOptions, QueryRows } from '@playline/runtime';
import { askView } from './ask-view.ts';
import type { Span } from './messages.ts';
import { readPages } from './read-pages.ts';

/** Name of a contract: its chain, and its address in lower case. */
export interface ContractName {
  readonly chain: string;
  readonly contractAddress: string;
}

/** An activity among others, by when its last version came. */
export interface ActivityPlace {
  /** Epoch microseconds. */
  readonly updatedUs: number;
  readonly id: string;
}

/** Which activities are looked for: '' says nothing. The span is of when they were indexed, as the chain interface has it. */
export interface ActivityQuestion extends Span {
  /** Epoch milliseconds: versions are hardly later. */
  readonly nowMs: number;
  /** Nothing of another contract is found. */
  readonly contracts: readonly ContractName[];
  readonly type: string;
  /** Decimal digits: of a token, or of a sale that has it among others. */
  readonly tokenId: string;
  /** Where the page in front ended. */
  readonly before?: ActivityPlace;
  /** 1 to 2,000; 100 when absent. */
  readonly activitiesMax?: number;
}

/** What an activity is about: a token, or so many of one. */
export interface ActivityAsset {
  readonly contractAddress: string;
  /** '' where the contract has but one token. */
  readonly tokenId: string;
  /** Decimal digits of the smallest unit; '' of a sale that does not say. */
  readonly amount: string;
}

/** What was paid in a sale. */
export interface ActivityPayment {
  /** Address of the token that was paid with; '' for the coin of the chain. */
  readonly contractAddress: string;
  /** Of the coin of the chain. */
  readonly symbol: string;
  /** Decimal digits of the smallest unit, fees included. */
  readonly amount: string;
}

/** An activity in its last version; times in epoch milliseconds. */
export interface ActivityLine extends ActivityPlace, ContractName {
  readonly type: string;
  readonly updatedMs: number;
  readonly indexedMs: number;
  /** Addresses; '' where nobody is told. */
  readonly from: string;
  readonly to: string;
  /** More than one of a sale of several. */
  readonly assets: readonly ActivityAsset[];
  readonly payment: ActivityPayment | null;
  /** '' where nothing is known of its place on the chain. */
  readonly transactionHash: string;
  readonly blockNumber: string;
}

export interface ActivityPage {
  readonly activities: readonly ActivityLine[];
  /** Where the next page begins; null when there is nothing behind this one. */
  readonly next: ActivityPlace | null;
  /** Epoch milliseconds: no version in front of it was looked at. */
  readonly searchedSinceMs: number;
}

/** What a chain says of a contract that is a fungible token. */
export interface TokenLine extends ContractName {
  /** Whatever its makers wrote; '' when not known. */
  readonly name: string;
  readonly symbol: string;
  /** Null when not known. */
  readonly decimals: number | null;
}

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/** How far back each step of a search looks, from the newest version on; behind the last one it looks at all. */
const STEPS_MS = [10 * MINUTE_MS, DAY_MS, 7 * DAY_MS, 31 * DAY_MS, 92 * DAY_MS, 366 * DAY_MS];
/** A search that has found too little by then says how far it came. */
const SEARCH_MAX_MS = 4_000;
const ACTIVITIES_MAX = 2_000;
const US_OF_MS = 1_000;

/** Names as the views take them. */
const toNames = (contracts: readonly ContractName[]) =>
  contracts.map(({ chain, contractAddress }) => `${chain} ${contractAddress.toLowerCase()}`);

interface Window {
  /** Epoch microseconds. */
  readonly sinceUs: number;
  readonly untilUs: number;
  /** '' when the end is no part of it. */
  readonly before: string;
  readonly rowsMax: number;
}

function readWindow(query: QueryRows, question: ActivityQuestion, { signal, ...window }: Window & QueryOptions) {
  const { contracts, type, tokenId, sinceMs, untilMs } = question;
  const { sinceUs, untilUs, before, rowsMax } = window;
  return askView(
    query,
    {
      view: 'portal_activities',
      args: {
        ...{ contracts: toNames(contracts), type, token: tokenId, before },
        ...{ since: sinceUs, until: untilUs, indexed_since: Math.max(0, sinceMs), indexed_until: untilMs },
      },
      columns: [
        ...['chain', 'contract_address', 'toString(id)', 'toUnixTimestamp64Micro(updated_at)'],
        ...['intDiv(toUnixTimestamp64Micro(indexed_at), 1000)', 'members'],
      ],
      tail: 'ORDER BY updated_at DESC, id DESC',
      rowsMax,
      toRow: toActivityLine,
    },
    signal === undefined ? {} : { signal },
  );
}

/**
 * Looks for activities, the one that came or changed last first, in steps that grow, and stops when the page is full or the
 * time is over.
 */
export async function searchActivities(
  query: QueryRows,
  question: ActivityQuestion,
  options: QueryOptions = {},
): Promise<ActivityPage> {
  const { nowMs, before, contracts, activitiesMax = 100 } = question;
  if (contracts.length === 0) return { activities: [], next: null, searchedSinceMs: 0 };
  const max = Math.min(Math.max(1, Math.trunc(activitiesMax)), ACTIVITIES_MAX);
  const end = before?.updatedUs ?? (nowMs + DAY_MS) * US_OF_MS;
  const begin = performance.now();
  const found: ActivityLine[] = [];
  let place: ActivityPlace = before ?? { updatedUs: end, id: '' };
  for (let step = 0; performance.now() - begin < SEARCH_MAX_MS; step += 1) {
    const from = before === undefined ? nowMs * US_OF_MS : end;
    const sinceUs = Math.max(0, from - (STEPS_MS[step] ?? Number.POSITIVE_INFINITY) * US_OF_MS);
    const window = { sinceUs, untilUs: place.updatedUs, before: place.id, rowsMax: max + 1 - found.length };
    found.push(...(await readWindow(query, question, { ...options, ...window })));
    if (found.length > max) return { activities: found.slice(0, max), ...endOf(found[max - 1]!) };
    if (sinceUs === 0) return { activities: found, next: null, searchedSinceMs: 0 };
    // The window is read to its beginning, which is part of it.
    place = { updatedUs: sinceUs, id: '' };
  }
  return { activities: found, next: place, searchedSinceMs: Math.floor(place.updatedUs / US_OF_MS) };
}

const endOf = ({ updatedUs, id }: ActivityLine) => ({
  next: { updatedUs, id },
  searchedSinceMs: Math.floor(updatedUs / US_OF_MS),
});

/**
 * Activities of a question, a page of them at a time, however long it takes: each page is a search of its own.
 * @param activities `PortalReads.activities` @param max so many at most
 * @returns where it ended, when there may be more
 */
export function readManyActivities(
  activities: (question: ActivityQuestion) => Promise<ActivityPage>,
  question: ActivityQuestion,
  max: number,
): AsyncGenerator<readonly ActivityLine[], ActivityPlace | null> {
  return readPages(
    async (linesMax, before) => {
      const activitiesMax = Math.min(linesMax, ACTIVITIES_MAX);
      const page = await activities({ ...question, activitiesMax, ...(before && { before }) });
      return { lines: page.activities, next: page.next };
    },
    { place: question.before, linesMax: max },
  );
}

/** Of these contracts those that are fungible tokens. Reads a granule or two of each. */
export function readTokens(
  query: QueryRows,
  contracts: readonly ContractName[],
  options?: QueryOptions,
): Promise<TokenLine[]> {
  if (contracts.length === 0) return Promise.resolve([]);
  return askView(
    query,
    {
      view: 'portal_tokens',
      args: { contracts: toNames(contracts) },
      columns: ['chain', 'contract_address', "ifNull(name, '')", "ifNull(symbol, '')", 'decimals'],
      rowsMax: contracts.length,
      toRow: ([chain, contract, name, symbol, decimals]) => ({
        ...{ chain: String(chain), contractAddress: String(contract), name: String(name), symbol: String(symbol) },
        decimals: decimals == null ? null : Number(decimals),
      }),
    },
    options,
  );
}

type Json = Readonly<Record<string, unknown>>;

const objectOf = (value: unknown): Json => (typeof value === 'object' && value !== null ? (value as Json) : {});
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Members are written by the activity writer, by the rules of an import; what is absent is ''. */
function toActivityLine([chain, contract, id, updated, indexed, text]: readonly unknown[]): ActivityLine {
  const members = objectOf(JSON.parse(`{${String(text)}}`));
  const [details, metadata] = [objectOf(members.details), objectOf(members.blockchain_metadata)];
  const { asset } = details;
  return {
    ...{ chain: String(chain), contractAddress: String(contract), id: String(id), type: textOf(members.type) },
    ...{ updatedUs: Number(updated), updatedMs: Math.floor(Number(updated) / US_OF_MS), indexedMs: Number(indexed) },
    ...{ from: textOf(details.from), to: textOf(details.to) },
    assets: (Array.isArray(asset) ? asset : [{ amount: details.amount, ...objectOf(asset) }]).map(toAsset),
    payment: details.payment === undefined ? null : toPayment(objectOf(details.payment)),
    ...{ transactionHash: textOf(metadata.transaction_hash), blockNumber: textOf(metadata.block_number) },
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
