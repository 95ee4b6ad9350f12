import { type ActivityFilters, type CursorPosition, createCursors, NO_FILTERS } from '@playline/chain';
import { toTimestamp } from '@playline/contracts';
import { CURSOR_SECRET } from '../services.ts';
import { BUSY, type Feed } from './fill.ts';

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

const cursors = createCursors({ keys: [{ id: 1, secret: Buffer.from(CURSOR_SECRET, 'hex') }] });

/** @param position null: from the beginning */
export function toPath({ filters }: ReadCase, pageSize: number, position: CursorPosition | null): string {
  const query = new URLSearchParams({ page_size: String(pageSize) });
  const { fromIndexedAt, toIndexedAt, contractAddress, type } = filters;
  if (fromIndexedAt !== null) query.set('from_indexed_at', toTimestamp(fromIndexedAt));
  if (toIndexedAt !== null) query.set('to_indexed_at', toTimestamp(toIndexedAt));
  if (contractAddress !== null) query.set('contract_address', contractAddress);
  if (type !== null) query.set('activity_type', type);
  if (position !== null) query.set('page_cursor', cursors.encode(position, { chain: BUSY, filters }));
  return `/v1/chains/${BUSY}/activity-history?${query}`;
}

export function withCursor(path: string, cursor: string): string {
  const url = new URL(path, 'http://127.0.0.1');
  url.searchParams.set('page_cursor', cursor);
  return url.pathname + url.search;
}
