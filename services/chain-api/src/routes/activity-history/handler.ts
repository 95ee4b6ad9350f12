import {
  type ActivityPage,
  type ChainStore,
  type CursorScope,
  type Cursors,
  type PageQuestion,
  toHorizon,
  toPageBody,
} from '@playline/chain';
import { settleWithin } from '@playline/http';
import type { Chain } from '../../chains.ts';
import type { HorizonOf } from '../../horizons.ts';
import { CACHE_HEADERS, type ChainRead } from '../chain-route.ts';
import { parseHistoryQuery } from './history-query.ts';

export interface HistoryParts {
  store: Pick<ChainStore, 'readPage'>;
  cursors: Cursors;
  horizonOf: HorizonOf;
  deadlineMs: number;
}

type Asked = Omit<PageQuestion, 'horizon'>;

/** Builds GET activity-history: a page of what changed, in the order of `updated_at`. */
export function createHistoryRead({ store, cursors, horizonOf, deadlineMs }: HistoryParts): ChainRead {
  const company = createCompany();
  const horizonAt = async (question: Asked, chain: Chain, hasCompany: boolean): Promise<number> => {
    // A cursor is signed, so the feed was known as far as its place when it was given, and still is. This process may know
    // less: it has read no watermark since they were lost, or an old one. Rows before the cursor would be left out in silence.
    const known = await horizonOf(chain.partition, hasCompany);
    if (known === null && question.direction === 'next')
      // A page that ends here would look like the end of the history.
      throw new Error(`nobody has said yet how far partition ${chain.partition} is known`);
    return Math.max(known ?? 0, toHorizon(question.gap.updatedAt));
  };
  const readPage = async (question: Asked, chain: Chain): Promise<ActivityPage> => {
    const hasCompany = company.isThere();
    const horizon = await horizonAt(question, chain, hasCompany);
    const page = await store.readPage({ ...question, horizon });
    assertOfPartition(page, chain);
    // A reader takes a page that is not full for the end, so nothing that was published before it asked may be missing.
    if (!hasCompany || question.direction === 'previous' || page.rows.length >= question.limit) return page;
    const latest = await horizonAt(question, chain, false);
    if (latest === horizon) return page;
    const again = await store.readPage({ ...question, horizon: latest });
    assertOfPartition(again, chain);
    return again;
  };
  return {
    path: '/activity-history',
    answer: async (exchange, chain) => {
      let scope: CursorScope | null = null;
      const query = parseHistoryQuery(exchange.request.url ?? '', (text, filters) => {
        scope = { chain: chain.name, filters };
        const cursor = cursors.decode(text, scope);
        return cursor.ok ? cursor.place : null;
      });
      company.came();
      const reading = readPage({ ...query, chain: chain.name }, chain).finally(company.left);
      const page = await settleWithin(deadlineMs, reading);
      // The same one again: cursors remember what they have made of it.
      scope ??= { chain: chain.name, filters: query.filters };
      const shownChain = JSON.stringify({ id: chain.id, name: chain.name });
      const cursorsOf = JSON.stringify({
        previous_cursor: cursors.encode({ direction: 'previous', gap: page.previous }, scope),
        next_cursor: cursors.encode({ direction: 'next', gap: page.next }, scope),
      });
      exchange.answerBytes(200, toPageBody(page.rows, shownChain, cursorsOf), CACHE_HEADERS);
    },
  };
}

/** Readers whom one statement has answered together are all gone for a moment, and then all back. */
const COMPANY_LASTS_MS = 50;

/** Knows whether pages are read beside each other now, or were a moment ago. */
function createCompany() {
  let underWay = 0;
  let lastAtMs = Number.NEGATIVE_INFINITY;
  return {
    came: (): void => {
      underWay++;
      if (underWay > 1) lastAtMs = performance.now();
    },
    left: (): void => void underWay--,
    isThere: (): boolean => performance.now() - lastAtMs < COMPANY_LASTS_MS,
  };
}

/**
 * The horizon was that of one partition: of rows in another it says nothing, and some would be missed.
 * @throws Error when the setting of the number of partitions is not what the topic has
 */
function assertOfPartition({ rows }: ActivityPage, { name, partition }: Chain): void {
  const other = rows.find((row) => row.partition !== partition);
  if (other !== undefined)
    throw new Error(
      `activities of ${name} stand in partition ${other.partition} and not in ${partition}: is ACTIVITY_PARTITIONS what the topic has?`,
    );
}
