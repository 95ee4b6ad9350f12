import { compareUuids, type QueryOptions, type QueryRows } from '@playline/stores';
import type { Span } from './messages.ts';
import { exceedsReadLimits, queryView, readPages, SEARCH_MAX_MS } from './query-view.ts';

const US_OF_MS = 1_000;

/** Name of a contract: its chain, and its address in lower case. */
export interface ContractName {
  readonly chain: string;
  readonly contractAddress: string;
}

/** Which activities are looked for: '' says nothing. The span is of when they were indexed, as the chain interface has it. */
export interface ActivitySearch extends Span {
  /** Epoch milliseconds: versions are hardly later. */
  readonly nowMs: number;
  /** Nothing of another contract is found. */
  readonly contracts: readonly ContractName[];
  readonly type: string;
  /** Decimal digits: of a token, or of a sale that has it among others. */
  readonly tokenId: string;
  /** Where the page in front ended. */
  readonly before?: ActivityPosition;
  /** 1 to 1,000; 100 when absent. */
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
export interface ActivityLine extends ActivityPosition, ContractName {
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

export type ActivityPage = SearchedPage<ActivityLine>;

/** What a chain says of a contract that is a fungible token. */
export interface TokenLine extends ContractName {
  /** Whatever its makers wrote; '' when not known. */
  readonly name: string;
  readonly symbol: string;
  /** Null when not known. */
  readonly decimals: number | null;
}

const DAY_MS = 86_400_000;
/**
 * The first window of a search. A month: most contracts fill a page with it, or are quiet. A token is looked for in all of the
 * time at once, because the filter over token ids leaves little to read.
 */
const FIRST_SPAN_US = { any: 31 * DAY_MS * US_OF_MS, ofToken: Number.POSITIVE_INFINITY } as const;
/** The view returns one more at most. */
const ACTIVITIES_MAX = 1_000;
/** Each contract costs a granule or more of every part, and the view bounds the rows that a question may read. */
const CONTRACTS_PER_QUERY = 32;
/** Of so many contracts, to ask where a page begins costs no more than a window that is refused. */
const CHEAP_STARTS_MAX = 4;

/** Names as the views take them. */
const toNames = (contracts: readonly ContractName[]) =>
  contracts.map(({ chain, contractAddress }) => `${chain} ${contractAddress.toLowerCase()}`);

/** Reads the newest activities of a window, of some contracts after the others. */
async function readWindow(
  query: QueryRows,
  question: ActivitySearch,
  { signal, ...window }: ActivityWindow & QueryOptions,
): Promise<ActivityLine[]> {
  const found: ActivityLine[] = [];
  for (const contracts of inBatches(question.contracts)) {
    const some = { ...question, contracts };
    for (const each of await queryWindow(query, some, { ...window, ...(signal === undefined ? {} : { signal }) }))
      found.push(each);
  }
  return found.sort(byNewest).slice(0, window.rowsMax);
}

function inBatches(contracts: readonly ContractName[]): (readonly ContractName[])[] {
  const questions = Math.ceil(contracts.length / CONTRACTS_PER_QUERY);
  return Array.from({ length: questions }, (_, at) =>
    contracts.slice(at * CONTRACTS_PER_QUERY, (at + 1) * CONTRACTS_PER_QUERY),
  );
}

interface StartSearch extends TimeSpan {
  readonly newer: number;
}

/** As `ActivitySource.findStart`. Reads so many rows of each contract. */
async function findStart(
  query: QueryRows,
  { contracts, type }: Pick<ActivitySearch, 'contracts' | 'type'>,
  { sinceUs, untilUs, newer, ...options }: StartSearch & QueryOptions,
): Promise<number> {
  let latestUs = 0;
  for (const some of inBatches(contracts)) {
    const times = await queryView(
      query,
      {
        view: 'portal_activity_times',
        args: toNames(some).map((contract) => ({ contract, type, since: sinceUs, until: untilUs, newer })),
        columns: ['max(updated_us)'],
        rowsMax: 1,
        toRow: ([us]) => Number(us),
      },
      options,
    );
    latestUs = times.reduce((most, each) => Math.max(most, each), latestUs);
  }
  return latestUs;
}

function queryWindow(query: QueryRows, question: ActivitySearch, { signal, ...window }: ActivityWindow & QueryOptions) {
  const { contracts, type, tokenId, sinceMs, untilMs } = question;
  const { sinceUs, untilUs, before, rowsMax } = window;
  return queryView(
    query,
    {
      view: 'portal_activities',
      args: {
        contracts: toNames(contracts),
        type,
        token: tokenId,
        before,
        since: sinceUs,
        until: untilUs,
        indexed_since: Math.max(0, sinceMs),
        indexed_until: untilMs,
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
 * Looks for activities, the one that came or changed last first, window by window, and stops when the page is full or the time
 * is over.
 */
export async function searchActivities(
  query: QueryRows,
  question: ActivitySearch,
  options: QueryOptions = {},
): Promise<ActivityPage> {
  const { nowMs, before, contracts, activitiesMax = 100 } = question;
  if (contracts.length === 0) return { activities: [], next: null, searchedSinceMs: 0 };
  const max = Math.min(Math.max(1, Math.trunc(activitiesMax)), ACTIVITIES_MAX);
  const from = before ?? { updatedUs: (nowMs + DAY_MS) * US_OF_MS, id: '' };
  const firstSpanUs = question.tokenId === '' ? FIRST_SPAN_US.any : FIRST_SPAN_US.ofToken;
  const source: ActivitySource<ActivityLine> = {
    read: (window) => readWindow(query, question, { ...options, ...window }),
    findStart: (span, newer) => findStart(query, question, { ...options, ...span, newer }),
    refusalsBeforeFindStart: contracts.length <= CHEAP_STARTS_MAX ? 1 : 2,
  };
  return searchBackwards(source, { from, firstSpanUs, max, timeMaxMs: SEARCH_MAX_MS });
}

/**
 * Activities of a question, a page of them at a time, however long it takes: each page is a search of its own.
 * @param activities `PortalReads.activities` @param max so many at most
 * @returns where it ended, when there may be more
 */
export function readManyActivities(
  activities: (question: ActivitySearch) => Promise<ActivityPage>,
  question: ActivitySearch,
  max: number,
): AsyncGenerator<readonly ActivityLine[], ActivityPosition | null> {
  return readPages(
    async (activitiesMax, before) => {
      const page = await activities({ ...question, activitiesMax, ...(before && { before }) });
      return { lines: page.activities, next: page.next };
    },
    { after: question.before, linesMax: max, perQuery: ACTIVITIES_MAX },
  );
}

/** Of these contracts those that are fungible tokens. Reads a granule or two of each. */
export function readTokens(
  query: QueryRows,
  contracts: readonly ContractName[],
  options?: QueryOptions,
): Promise<TokenLine[]> {
  if (contracts.length === 0) return Promise.resolve([]);
  return queryView(
    query,
    {
      view: 'portal_tokens',
      args: { contracts: toNames(contracts) },
      columns: ['chain', 'contract_address', "ifNull(name, '')", "ifNull(symbol, '')", 'decimals'],
      rowsMax: contracts.length,
      toRow: ([chain, contract, name, symbol, decimals]) => ({
        chain: String(chain),
        contractAddress: String(contract),
        name: String(name),
        symbol: String(symbol),
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
    chain: String(chain),
    contractAddress: String(contract),
    id: String(id),
    type: textOf(members.type),
    updatedUs: Number(updated),
    updatedMs: Math.floor(Number(updated) / US_OF_MS),
    indexedMs: Number(indexed),
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

/** A version of an activity among others. */
export interface ActivityPosition {
  /** Epoch microseconds. */
  readonly updatedUs: number;
  readonly id: string;
}

/** Epoch microseconds; both are part of the span. */
interface TimeSpan {
  readonly sinceUs: number;
  readonly untilUs: number;
}

/** A span of versions, newest first. Of its last microsecond, the window has only the versions that come before `before`. */
export interface ActivityWindow extends TimeSpan {
  /** Id of an activity; '' when no version of `untilUs` belongs to the window. */
  readonly before: string;
  readonly rowsMax: number;
}

/** Reads the newest rows of a window. Throws a fault of `isTooMuch` when the window has more than one question may read. */
export type ReadActivityWindow<T> = (window: ActivityWindow) => Promise<readonly T[]>;

/** How a search reads. */
export interface ActivitySource<T> {
  readonly read: ReadActivityWindow<T>;
  /**
   * Finds where the window that is long enough begins: the time (epoch microseconds) of the version of a contract that has so
   * many newer ones in this window, without those of its last microsecond. Of several contracts it is the latest such time,
   * and 0 when none has so many.
   */
  findStart(window: TimeSpan, newer: number): Promise<number>;
  /** Refused windows before `findStart` is asked: 1, or more where it costs more than a refused window. */
  readonly refusalsBeforeFindStart: number;
}

/** Where a search starts, and when it stops. */
interface SearchBounds {
  /** The newest end of the search; versions of this microsecond are included only before `id`. */
  readonly from: ActivityPosition;
  /** Microseconds that the first window is long. */
  readonly firstSpanUs: number;
  /** Rows of a page. */
  readonly max: number;
  /** Milliseconds after which a search that has found too little stops. */
  readonly timeMaxMs: number;
}

interface SearchedPage<T> {
  readonly activities: readonly T[];
  /** Where the next page begins; null when there is nothing older. */
  readonly next: ActivityPosition | null;
  /** Epoch milliseconds: no older version was looked at. */
  readonly searchedSinceMs: number;
}

/** After a refusal each window is so many times as long as the one before, at most half the way to what was refused. */
const GROWTH_AFTER_REFUSAL = 64;
/** A refused window is divided by it where nothing is known of its start. All the time becomes three and a half years. */
const DIVISOR = 16;
/** So many more versions than rows: some of them have a later version. */
const VERSIONS_OF_A_ROW = 1.5;

/**
 * Reads windows from the newest to the oldest until the page is full. The second window is all the time before the first,
 * because the planning of a question costs more than what it reads in a quiet contract. After a window that is refused as
 * too much, the next one is as long as the page needs. So a contract with millions of versions in one minute fills a page
 * like any other.
 * @throws what the source throws, and its refusal when even a single microsecond is too much
 */
export async function searchBackwards<T extends ActivityPosition>(
  source: ActivitySource<T>,
  { from, firstSpanUs, max, timeMaxMs }: SearchBounds,
): Promise<SearchedPage<T>> {
  const begin = performance.now();
  const found: T[] = [];
  const spans = createSpans(firstSpanUs);
  let place = from;
  let refusals = 0;
  // A search must get further than the one before it: it does not stop before it has read one window.
  for (let hasRead = false; !hasRead || performance.now() - begin < timeMaxMs; ) {
    const { updatedUs: untilUs, id: before } = place;
    const sinceUs = Math.max(0, untilUs - Math.max(leastSpanOf(before), spans.spanUs));
    const rowsMax = max + 1 - found.length;
    const rows = await readOrNull(source.read, { sinceUs, untilUs, before, rowsMax });
    if (rows === null) {
      refusals++;
      const find = () => source.findStart({ sinceUs, untilUs }, Math.ceil(rowsMax * VERSIONS_OF_A_ROW));
      // Once: where a filter leaves few of the newest versions, the next windows must be longer, and not as short again.
      const isAsked = refusals === source.refusalsBeforeFindStart;
      spans.refuse({ sinceUs, untilUs }, isAsked ? await nullIfRefused(find) : null);
      continue;
    }
    for (const each of rows) found.push(each);
    if (found.length > max) return { activities: found.slice(0, max), ...endOf(found[max - 1]!) };
    if (sinceUs === 0) return { activities: found, next: null, searchedSinceMs: 0 };
    // The window was read to its start, which is part of it.
    place = { updatedUs: sinceUs, id: '' };
    spans.accept(sinceUs);
    hasRead = true;
  }
  return { activities: found, next: place, searchedSinceMs: Math.floor(place.updatedUs / US_OF_MS) };
}

/** Chooses how long the next window is. Times in epoch microseconds. */
function createSpans(firstSpanUs: number) {
  let spanUs = firstSpanUs;
  let growth = Number.POSITIVE_INFINITY;
  /**
   * Start of the shortest window that was refused: from the place of the search to there is too much. Not that of all the
   * time, which says nothing: to come near it by halves would take fifty windows of years without data.
   */
  let refusedUs: number | null = null;
  return {
    get spanUs() {
      return spanUs;
    },
    /** @param startUs where a window begins that is as long as the page needs; null when not known */
    refuse({ sinceUs, untilUs }: TimeSpan, startUs: number | null) {
      if (sinceUs > 0) refusedUs = sinceUs;
      growth = GROWTH_AFTER_REFUSAL;
      const isShorter = startUs !== null && startUs > sinceUs;
      spanUs = isShorter ? untilUs - startUs : Math.floor((untilUs - sinceUs) / DIVISOR);
    },
    /** @param sinceUs start of the window that was read */
    accept(sinceUs: number) {
      if (refusedUs !== null && refusedUs >= sinceUs) refusedUs = null;
      const halfUs = refusedUs === null ? Number.POSITIVE_INFINITY : Math.floor((sinceUs - refusedUs) / 2);
      spanUs = Math.min(Math.max(1, spanUs) * growth, Math.max(1, halfUs));
    },
  };
}

/** Microseconds: a window without versions of its end needs one more to have any. */
const leastSpanOf = (before: string) => (before === '' ? 1 : 0);

/** @returns null for a window that is too much and can be divided */
async function readOrNull<T>(read: ReadActivityWindow<T>, window: ActivityWindow): Promise<readonly T[] | null> {
  const isDivisible = window.untilUs - window.sinceUs > leastSpanOf(window.before);
  return isDivisible ? nullIfRefused(() => read(window)) : read(window);
}

async function nullIfRefused<T>(ask: () => Promise<T>): Promise<T | null> {
  try {
    return await ask();
  } catch (fault) {
    if (exceedsReadLimits(fault)) return null;
    throw fault;
  }
}

const endOf = ({ updatedUs, id }: ActivityPosition) => ({
  next: { updatedUs, id },
  searchedSinceMs: Math.floor(updatedUs / US_OF_MS),
});

/** The order of pages: the newest first, and in one microsecond the order that ClickHouse has for ids. */
export function byNewest(a: ActivityPosition, b: ActivityPosition): number {
  return a.updatedUs === b.updatedUs ? compareUuids(b.id, a.id) : b.updatedUs - a.updatedUs;
}
