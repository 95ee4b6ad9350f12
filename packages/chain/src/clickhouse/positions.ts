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
 * the first one; without a contract or a type each next one is so many times as long, so that years are crossed in four
 * steps. What one has too rarely for its first window is looked for in all the rest at once.
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
    const growth = isFiltered(filters) ? Number.POSITIVE_INFINITY : WINDOW_GROWTH;
    for (let size = FIRST_WINDOW_US[isFiltered(filters) ? 'filtered' : 'all']; ; size *= growth) {
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
    { ...SETTINGS, optimize_use_projections: 0 },
  );
  return answer.length === 0 ? horizon : new RowBinaryReader(answer).int64();
}

async function readWindow(ask: Ask, question: PageQuestion, window: Window): Promise<FoundVersion[]> {
  const { chain, filters, gap, direction, limit } = question;
  const order = direction === 'next' ? '' : ' DESC';
  const { table, settings } = sourceOf(filters, window);
  const conditions = [
    'chain = {chain: String}',
    `updated_at >= ${toTimeLiteral(window.least)} AND updated_at < ${toTimeLiteral(window.end)}`,
    toBeyond(gap, direction),
    ...toFilterConditions(filters),
  ];
  const answer = await ask(
    'SELECT toUnixTimestamp64Micro(updated_at) AS us, toString(id) AS name, ' +
      `toUnixTimestamp64Micro(indexed_at) AS indexed FROM ${table} ` +
      `WHERE ${conditions.join(' AND ')} ORDER BY updated_at${order}, id${order} LIMIT ${limit} FORMAT RowBinary`,
    { chain, contract: filters.contractAddress?.slice(2) ?? '', type: filters.type ?? '' },
    settings,
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

const projectionOf = ({ contractAddress, type }: ActivityFilters) =>
  `of_${[...(contractAddress === null ? [] : ['contract']), ...(type === null ? [] : ['type'])].join('_and_')}`;

/**
 * Named as a setting, a projection is read of the parts alone that the window is in, but the engine looks up the condition
 * in the index of every other order too: over years that is nearly all that a question takes. Named as a table it is
 * opened in every part, and nothing else is.
 */
function sourceOf(filters: ActivityFilters, window: Window): Source {
  if (!isFiltered(filters)) return { table: 'activities', settings: { ...SETTINGS, optimize_use_projections: 0 } };
  const name = projectionOf(filters);
  return window.end - window.least <= FIRST_WINDOW_US.filtered
    ? { table: 'activities', settings: { ...SETTINGS, preferred_optimize_projection_name: name } }
    : { table: `mergeTreeProjection(currentDatabase(), 'activities', '${name}')`, settings: SETTINGS };
}

interface Source {
  readonly table: string;
  readonly settings: QuestionSettings;
}

const SETTINGS: QuestionSettings = {
  max_threads: 1,
  // Small, so that a reading in order ends soon.
  max_block_size: 256,
  // Buffered, every part is read until it has rows enough for the whole page.
  read_in_order_use_buffering: 0,
};
