import { setTimeout as delay } from 'node:timers/promises';
import { type ActivityFilters, NO_FILTERS } from '@playline/chain';
import { parseTimestampMicros, toTimestamp } from '@playline/contracts';
import type { Random } from '@playline/testkit/random';
import type { Api, FeedChain } from './feed-rig.ts';
import type { Findings } from './findings.ts';
import { contractOf, indexedAtOf, typeOf } from './traffic.ts';

/** An activity as a page has it. */
export interface ServedRow {
  readonly id: string;
  /** Its `updated_at` in epoch microseconds. */
  readonly us: number;
  /** The whole row as text. */
  readonly text: string;
}

export interface ServedPage {
  /** Ascending by `updated_at`. */
  readonly rows: readonly ServedRow[];
  readonly previous: string;
  readonly next: string;
  /**
   * False when the API may have served an old watermark because it could not read the current one. The API counts those
   * pages.
   */
  isFresh(): Promise<boolean>;
}

/**
 * Whether a walk ends at this page. An empty page with a new cursor is not the end: the API stopped early because the
 * page became too expensive.
 * @param onward the page's cursor in the direction of the walk
 * @param requested the cursor of the request; null: from the beginning
 */
export const isLast = ({ rows }: ServedPage, onward: string, requested: string | null): boolean =>
  rows.length === 0 && onward === requested;

/** The chain and the filters that a reader follows. */
export interface FeedQuery {
  readonly chain: FeedChain;
  readonly filters: ActivityFilters;
}

/** Most pages are small, so that a walk has many. Some are as large as allowed. */
const PAGE_MAX = 30;
const LARGE_SHARE = 0.3;
const LARGE_MAX = 200;
const ANSWER_MAX_MS = 10_000;
const AGAIN_MS = 50;

/** Reads pages. Tries the running APIs until one answers. */
export interface PageClient {
  read(query: FeedQuery, cursor: string | null): Promise<ServedPage>;
}

export interface PageClientOptions {
  readonly random: Random;
  readonly apis: () => readonly Api[];
  readonly findings: Findings;
}

export function createPageClient({ random, apis, findings }: PageClientOptions): PageClient {
  let missed = '';
  const readOnce = async (query: FeedQuery, cursor: string | null): Promise<ServedPage | null> => {
    const [first, ...others] = apis();
    if (first === undefined) return null;
    const api = random.pick([first, ...others]);
    const oldBefore = api.oldHorizons.known;
    const url = new URL(`${api.url}/v1/chains/${query.chain.name}/activity-history`);
    for (const [name, value] of parametersOf(query.filters, random)) url.searchParams.set(name, value);
    const largest = random.chance(LARGE_SHARE) ? LARGE_MAX : PAGE_MAX;
    if (random.chance(0.9)) url.searchParams.set('page_size', String(random.integer(1, largest)));
    if (cursor !== null) url.searchParams.set('page_cursor', cursor);
    const answer = await fetchPage(url);
    // The API was killed, is starting or has no store, so another one is tried.
    if (answer === null || answer.status === 500) {
      missed = `${url.pathname}${url.search}: ${answer?.text ?? 'no answer'}`;
      return null;
    }
    if (answer.status !== 200) {
      findings.add('answers', `${answer.status} to ${url.search}: ${answer.text}`);
      return null;
    }
    const { result, page } = JSON.parse(answer.text) as { result: Wire[]; page: Record<string, unknown> };
    const { previous_cursor: previous, next_cursor: next } = page;
    if (typeof previous !== 'string' || typeof next !== 'string' || previous === '' || next === '')
      throw new Error(`a page without cursors: ${JSON.stringify(page)}`);
    const isFresh = async () => (await api.oldHorizons.fetch().catch(() => Number.NaN)) === oldBefore;
    return { rows: result.map(toRow), previous, next, isFresh };
  };
  return {
    async read(query, cursor) {
      const endMs = performance.now() + ANSWER_MAX_MS * 6;
      for (;;) {
        const page = await readOnce(query, cursor);
        if (page !== null) return page;
        if (performance.now() > endMs) throw new Error(`no API answers; the last to ${missed}`);
        await delay(AGAIN_MS);
      }
    },
  };
}

type Wire = Readonly<Record<string, unknown>> & { id: string; updated_at: string };
const toRow = (wire: Wire): ServedRow => ({
  id: wire.id,
  us: parseTimestampMicros(wire.updated_at),
  text: JSON.stringify(wire),
});

async function fetchPage(url: URL): Promise<{ status: number; text: string } | null> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(ANSWER_MAX_MS) });
    return { status: answer.status, text: await answer.text() };
  } catch {
    return null;
  }
}

/** Each bound of `indexed_at` has two names. */
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

/** Chooses a chain and filters of any kind. Half of all readers use no filter. */
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
