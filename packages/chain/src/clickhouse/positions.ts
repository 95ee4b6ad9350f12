import type { FoundVersion, VersionSource } from '../page.ts';
import type { Gap } from '../position.ts';
import type { ActivityFilters, PageQuestion } from '../store.ts';
import { toTimeLiteral, toUuidLiteral } from './literals.ts';
import type { QuestionSettings, Questions } from './questions.ts';
import { RowBinaryReader } from './row-binary.ts';

type Ask = Questions['ask'];
const HOUR_US = 60 * 60 * 1_000_000;
/**
 * Without a window the engine opens every part behind the gap. Pages near the end of the feed, which are nearly all, fit
 * the first window; what is rare is looked for in larger ones: a feed of years is crossed in three or four steps.
 */
const FIRST_WINDOW_US = { all: HOUR_US, filtered: 32 * HOUR_US };
const WINDOW_GROWTH = 32;

/** In the direction of reading, from `from` (which may be in it) to before `to`. */
interface Window {
  readonly least: number;
  /** Not in the window. */
  readonly end: number;
}

/** Creates the reader of positions, window by window. */
export function createReadPositions({ ask }: Pick<Questions, 'ask'>): VersionSource<never>['positions'] {
  return async (question) => {
    const { gap, direction, horizon, limit, filters } = question;
    const isForward = direction === 'next';
    const found: FoundVersion[] = [];
    let edge = isForward ? await startOf(ask, question) : Math.min(gap.updatedAt + 1, horizon);
    for (let size = FIRST_WINDOW_US[isFiltered(filters) ? 'filtered' : 'all']; ; size *= WINDOW_GROWTH) {
      const isLast = isForward ? edge >= horizon : edge <= 0;
      if (isLast || found.length === limit) return found;
      const window = isForward
        ? { least: edge, end: Math.min(edge + size, horizon) }
        : { least: Math.max(edge - size, 0), end: edge };
      found.push(...(await readWindow(ask, { ...question, limit: limit - found.length }, window)));
      edge = isForward ? window.end : window.least;
    }
  };
}

const isFiltered = ({ contractAddress, type }: ActivityFilters) => contractAddress !== null || type !== null;

/** Where the first window begins: windows from the start of time would cross decades before they reach the first row. */
async function startOf(ask: Ask, { chain, gap, horizon }: PageQuestion): Promise<number> {
  if (gap.updatedAt > 0) return gap.updatedAt;
  const answer = await ask(
    'SELECT toUnixTimestamp64Micro(updated_at) FROM activities WHERE chain = {chain: String} ' +
      'ORDER BY chain, updated_at LIMIT 1 FORMAT RowBinary',
    { chain },
    { optimize_use_projections: 0, max_threads: 1, max_block_size: BLOCK_ROWS },
  );
  return answer.length === 0 ? horizon : new RowBinaryReader(answer).int64();
}

async function readWindow(ask: Ask, question: PageQuestion, window: Window): Promise<FoundVersion[]> {
  const { chain, filters, gap, direction, limit } = question;
  const order = direction === 'next' ? '' : ' DESC';
  const conditions = [
    'chain = {chain: String}',
    `updated_at >= ${toTimeLiteral(window.least)} AND updated_at < ${toTimeLiteral(window.end)}`,
    toBeyond(gap, direction),
    ...toFilterConditions(filters),
  ];
  const answer = await ask(
    'SELECT toUnixTimestamp64Micro(updated_at) AS us, toString(id) AS name, ' +
      'toUnixTimestamp64Micro(indexed_at) AS indexed FROM activities ' +
      `WHERE ${conditions.join(' AND ')} ORDER BY updated_at${order}, id${order} LIMIT ${limit} FORMAT RowBinary`,
    { chain, contract: filters.contractAddress?.slice(2) ?? '', type: filters.type ?? '' },
    settingsFor(filters),
  );
  const reader = new RowBinaryReader(answer);
  const found: FoundVersion[] = [];
  while (!reader.isAtEnd) found.push({ updatedAt: reader.int64(), id: reader.text(), indexedAt: reader.int64() });
  return found;
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

/** Small, so that a reading in order ends soon. */
const BLOCK_ROWS = 256;

/** The engine would take a projection for its narrow rows also where its order is another, and then read all of it. */
function settingsFor({ contractAddress, type }: ActivityFilters): QuestionSettings {
  // Buffered, every part is read until it has rows enough for the whole page.
  const common = { max_threads: 1, max_block_size: BLOCK_ROWS, read_in_order_use_buffering: 0 };
  const by = [...(contractAddress === null ? [] : ['contract']), ...(type === null ? [] : ['type'])];
  if (by.length === 0) return { ...common, optimize_use_projections: 0 };
  return { ...common, preferred_optimize_projection_name: `of_${by.join('_and_')}` };
}
