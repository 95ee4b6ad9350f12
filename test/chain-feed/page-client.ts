import { setTimeout as delay } from 'node:timers/promises';
import { type ActivityFilters, NO_FILTERS } from '@playline/chain';
import { parseTimestampMicros, toTimestamp } from '@playline/contracts';
import type { Random } from '@playline/testkit/random';
import type { Api, FeedChain } from './feed-rig.ts';
import type { Findings } from './findings.ts';
import { contractOf, indexedAtOf, typeOf } from './traffic.ts';

export interface ServedRow {
  readonly id: string;
  readonly us: number;
  readonly text: string;
}

export interface ServedPage {
  readonly rows: readonly ServedRow[];
  readonly previous: string;
  readonly next: string;
  /** Resolves to true if the API is known to have used a current watermark. */
  isFresh(): Promise<boolean>;
}

/** An empty page with a new cursor is not the last page. @param requested the cursor, or null for the beginning */
export const isLast = ({ rows }: ServedPage, nextCursor: string, requested: string | null): boolean =>
  rows.length === 0 && nextCursor === requested;

export interface FeedQuery {
  readonly chain: FeedChain;
  readonly filters: ActivityFilters;
}

const PAGE_MAX = 30;
const LARGE_FRACTION = 0.3;
const LARGE_MAX = 200;
const RESPONSE_MAX_MS = 10_000;
const RETRY_MS = 50;

export interface PageClient {
  read(query: FeedQuery, cursor: string | null): Promise<ServedPage>;
}

export interface PageClientOptions {
  readonly random: Random;
  readonly apis: () => readonly Api[];
  readonly findings: Findings;
}

export function createPageClient({ random, apis, findings }: PageClientOptions): PageClient {
  let lastFailure = '';
  const readOnce = async (query: FeedQuery, cursor: string | null): Promise<ServedPage | null> => {
    const [first, ...others] = apis();
    if (first === undefined) return null;
    const api = random.pick([first, ...others]);
    const staleBefore = api.stalePages.lastCount;
    const url = new URL(`${api.url}/v1/chains/${query.chain.name}/activity-history`);
    for (const [name, value] of parametersOf(query.filters, random)) url.searchParams.set(name, value);
    const largest = random.chance(LARGE_FRACTION) ? LARGE_MAX : PAGE_MAX;
    if (random.chance(0.9)) url.searchParams.set('page_size', String(random.integer(1, largest)));
    if (cursor !== null) url.searchParams.set('page_cursor', cursor);
    const response = await fetchPage(url);
    // The API was killed, is starting or cannot reach a store. The next attempt may use another API.
    if (response === null || response.status === 500) {
      lastFailure = `${url.pathname}${url.search}: ${response?.text ?? 'no response'}`;
      return null;
    }
    if (response.status !== 200) {
      findings.add('responses', `${response.status} to ${url.search}: ${response.text}`);
      return null;
    }
    const { result, page } = JSON.parse(response.text) as { result: ActivityJson[]; page: Record<string, unknown> };
    const { previous_cursor: previous, next_cursor: next } = page;
    if (typeof previous !== 'string' || typeof next !== 'string' || previous === '' || next === '')
      throw new Error(`page without cursors: ${JSON.stringify(page)}`);
    const isFresh = async () => (await api.stalePages.fetch().catch(() => Number.NaN)) === staleBefore;
    return { rows: result.map(toRow), previous, next, isFresh };
  };
  return {
    async read(query, cursor) {
      const endMs = performance.now() + RESPONSE_MAX_MS * 6;
      for (;;) {
        const page = await readOnce(query, cursor);
        if (page !== null) return page;
        if (performance.now() > endMs) throw new Error(`no API responds; last failure: ${lastFailure}`);
        await delay(RETRY_MS);
      }
    },
  };
}

type ActivityJson = Readonly<Record<string, unknown>> & { id: string; updated_at: string };
const toRow = (json: ActivityJson): ServedRow => ({
  id: json.id,
  us: parseTimestampMicros(json.updated_at),
  text: JSON.stringify(json),
});

async function fetchPage(url: URL): Promise<{ status: number; text: string } | null> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(RESPONSE_MAX_MS) });
    return { status: response.status, text: await response.text() };
  } catch {
    return null;
  }
}

/** Uses one of the two parameter names for each bound on `indexed_at`. */
function parametersOf({ type, contractAddress, ...bounds }: ActivityFilters, random: Random): [string, string][] {
  const suffix = () => random.pick(['updated_at', 'indexed_at']);
  const { fromIndexedAt: from, toIndexedAt: to } = bounds;
  return [
    ...(type === null ? [] : [['activity_type', type] as [string, string]]),
    ...(contractAddress === null ? [] : [['contract_address', contractAddress] as [string, string]]),
    ...(from === null ? [] : [[`from_${suffix()}`, toTimestamp(from)] as [string, string]]),
    ...(to === null ? [] : [[`to_${suffix()}`, toTimestamp(to)] as [string, string]]),
  ];
}

export function drawQuery(random: Random, chains: readonly FeedChain[], numbers: number): FeedQuery {
  const chain = random.pick(chains);
  if (random.chance(0.5)) return { chain, filters: NO_FILTERS };
  const number = () => random.integer(1, Math.max(1, numbers));
  const address = `0x${contractOf(number()).toString(16).padStart(40, '0')}`;
  const [low, high] = [number(), number()].sort((a, b) => a - b) as [number, number];
  return {
    chain,
    filters: {
      type: random.chance(0.4) ? typeOf(number()) : null,
      contractAddress: random.chance(0.4) ? address : null,
      fromIndexedAt: random.chance(0.3) ? indexedAtOf(low) : null,
      toIndexedAt: random.chance(0.3) ? indexedAtOf(high) : null,
    },
  };
}
