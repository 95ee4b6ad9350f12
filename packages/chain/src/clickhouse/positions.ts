import type { ClickHouseSettings } from '@clickhouse/client';
import type { VersionSource } from '../page.ts';
import type { Gap, Position } from '../position.ts';
import type { ActivityFilters, PageQuestion } from '../store.ts';
import type { Connection } from './connection.ts';
import { toTimeLiteral, toUuidLiteral } from './literals.ts';

/**
 * Without a window the engine opens every part behind the gap, and of a common type reads all of it. Pages near the end
 * of the feed, which are nearly all, fit the first window; a feed of years is crossed in some eight steps.
 */
const FIRST_WINDOW_US = 15 * 60 * 1_000_000;
const WINDOW_GROWTH = 8;

/** In the direction of reading, from `from` (which may be in it) to before `to`. */
interface Window {
  readonly least: number;
  /** Not in the window. */
  readonly end: number;
}

/** Creates the reader of positions, window by window. */
export function createReadPositions(connection: Connection): VersionSource['positions'] {
  return async (question) => {
    const { gap, direction, horizon, limit } = question;
    const isForward = direction === 'next';
    const found: Position[] = [];
    let edge = isForward ? await startOf(connection, question) : Math.min(gap.updatedAt + 1, horizon);
    for (let size = FIRST_WINDOW_US; ; size *= WINDOW_GROWTH) {
      const isLast = isForward ? edge >= horizon : edge <= 0;
      if (isLast || found.length === limit) return found;
      const window = isForward
        ? { least: edge, end: Math.min(edge + size, horizon) }
        : { least: Math.max(edge - size, 0), end: edge };
      found.push(...(await readWindow(connection, { ...question, limit: limit - found.length }, window)));
      edge = isForward ? window.end : window.least;
    }
  };
}

/** Where the first window begins: windows from the start of time would cross decades before they reach the first row. */
async function startOf(connection: Connection, { chain, gap, horizon }: PageQuestion): Promise<number> {
  if (gap.updatedAt > 0) return gap.updatedAt;
  const [first] = await connection.read<{ us: number }>(
    'SELECT toUnixTimestamp64Micro(updated_at) AS us FROM activities WHERE chain = {chain: String} ' +
      'ORDER BY chain, updated_at LIMIT 1',
    { params: { chain }, settings: { optimize_use_projections: 0, max_threads: 1 } },
  );
  return first?.us ?? horizon;
}

function readWindow(connection: Connection, question: PageQuestion, window: Window): Promise<Position[]> {
  const { chain, filters, gap, direction, limit } = question;
  const order = direction === 'next' ? '' : ' DESC';
  const conditions = [
    'chain = {chain: String}',
    `updated_at >= ${toTimeLiteral(window.least)} AND updated_at < ${toTimeLiteral(window.end)}`,
    toBeyond(gap, direction),
    ...toFilterConditions(filters),
  ];
  return connection
    .read<{ us: number; name: string }>(
      `SELECT toUnixTimestamp64Micro(updated_at) AS us, toString(id) AS name FROM activities ` +
        `WHERE ${conditions.join(' AND ')} ORDER BY updated_at${order}, id${order} LIMIT ${limit}`,
      {
        params: { chain, contract: filters.contractAddress?.slice(2) ?? '', type: filters.type ?? '' },
        settings: settingsFor(filters),
      },
    )
    .then((rows) => rows.map(({ us, name }) => ({ updatedAt: us, id: name })));
}

/** Not as a comparison of tuples, which the engine cannot look up in its index: it would read far more. */
function toBeyond(gap: Gap, direction: PageQuestion['direction']): string {
  const [time, id] = [toTimeLiteral(gap.updatedAt), toUuidLiteral(gap.id)];
  const sign = direction === 'next' ? '>' : '<';
  // The position itself is beyond the gap in front of it, and before the one behind it.
  const includes = (gap.side === 'before') === (direction === 'next') ? '=' : '';
  return `updated_at ${sign}= ${time} AND (updated_at ${sign} ${time} OR id ${sign}${includes} ${id})`;
}

function toFilterConditions({ fromIndexedAt, toIndexedAt, contractAddress, type }: ActivityFilters): string[] {
  return [
    ...(contractAddress === null ? [] : ['contract = toFixedString(unhex({contract: String}), 20)']),
    ...(type === null ? [] : ['type = {type: String}']),
    ...(fromIndexedAt === null ? [] : [`indexed_at >= ${toTimeLiteral(fromIndexedAt)}`]),
    ...(toIndexedAt === null ? [] : [`indexed_at <= ${toTimeLiteral(toIndexedAt)}`]),
  ];
}

/**
 * The engine would take a projection for its narrow rows also where its order is another, and then read all of it. A
 * small block ends a reading in order sooner.
 */
function settingsFor({ contractAddress, type }: ActivityFilters): ClickHouseSettings {
  const common: ClickHouseSettings = { max_threads: 1, max_block_size: '1024' };
  if (contractAddress === null && type === null) return { ...common, optimize_use_projections: 0 };
  return { ...common, preferred_optimize_projection_name: contractAddress === null ? 'of_type' : 'of_contract' };
}
