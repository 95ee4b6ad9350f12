import type { ActivityFilters } from '@playline/chain';
import { type CursorPosition, createCursors, NO_FILTERS } from '@playline/chain';
import { toTimestamp } from '@playline/contracts';
import { BUSY, type Feed } from './fill.ts';

/** A kind of request, with one line in the table. */
export interface ReadCase {
  readonly name: string;
  readonly filters: ActivityFilters;
}

export function casesOf({ contracts, startUs, endUs }: Feed): readonly ReadCase[] {
  const at = (share: number) => startUs + Math.floor((endUs - startUs) * share);
  const make = (name: string, filters: Partial<ActivityFilters>) => ({ name, filters: { ...NO_FILTERS, ...filters } });
  return [
    make('everything', {}),
    make('a contract of 10 %', { contractAddress: contracts.big }),
    make('a contract of 0.5 %', { contractAddress: contracts.middle }),
    make('a contract of 0.001 %', { contractAddress: contracts.small }),
    make('a contract of two rows', { contractAddress: contracts.ofTwoRows }),
    make('a type of 1 %', { type: 'burn' }),
    make('a type of 0.01 %', { type: 'withdrawal' }),
    make('a type of 1 % of a contract of 10 %', { type: 'burn', contractAddress: contracts.big }),
    make('indexed in a tenth of the year', { fromIndexedAt: at(0.6), toIndexedAt: at(0.7) }),
  ];
}

/** Cursor secret of the measured chain API, so that the bench can request a page from any place. */
const CURSOR_SECRET = 'cd'.repeat(32);
export const CURSOR_KEYS = `1=${CURSOR_SECRET}`;
const cursors = createCursors({ keys: [{ id: 1, secret: Buffer.from(CURSOR_SECRET, 'hex') }] });

/** @param place null: from the beginning */
export function toPath({ filters }: ReadCase, pageSize: number, place: CursorPosition | null): string {
  const query = new URLSearchParams({ page_size: String(pageSize) });
  const { fromIndexedAt, toIndexedAt, contractAddress, type } = filters;
  if (fromIndexedAt !== null) query.set('from_indexed_at', toTimestamp(fromIndexedAt));
  if (toIndexedAt !== null) query.set('to_indexed_at', toTimestamp(toIndexedAt));
  if (contractAddress !== null) query.set('contract_address', contractAddress);
  if (type !== null) query.set('activity_type', type);
  if (place !== null) query.set('page_cursor', cursors.encode(place, { chain: BUSY, filters }));
  return `/v1/chains/${BUSY}/activity-history?${query}`;
}

/** The same path with the cursor of the next page. */
export function withCursor(path: string, cursor: string): string {
  const url = new URL(path, 'http://127.0.0.1');
  url.searchParams.set('page_cursor', cursor);
  return url.pathname + url.search;
}
