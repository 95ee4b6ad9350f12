import { passesFilters } from '../filters.ts';
import { createReadPage, type VersionSource } from '../page.ts';
import { comparePositions, isBeyond, type Position } from '../position.ts';
import type { ActivityConstants, ActivityRow, TokenRow } from '../rows.ts';
import type { ActivityStore, ChainInsert, ChainStore, ChainTable } from '../store.ts';
import { toShownActivity } from '../wire.ts';

/**
 * What an insert that fails leaves behind: nothing; the rows and their token, so that only the answer was lost; or the
 * token alone, as an engine leaves it that is killed between its note of the token and the rename of the part.
 */
export type Leftover = 'nothing' | 'rows' | 'token';

/** Both sides of a store in memory, for tests of what stands before it. */
export interface MemoryChain {
  readonly activities: ActivityStore;
  readonly reader: ChainStore;
  /** Inserts whose rows were stored, each token once. */
  readonly blocks: readonly ChainInsert[];
  /** The next insert throws this instead. */
  failNext(fault: Error, leftover?: Leftover): void;
}

/** Creates an empty store in memory. */
export function createMemoryChain(): MemoryChain {
  const blocks: ChainInsert[] = [];
  const tokens = new Set<string>();
  const faults: { fault: Error; leftover: Leftover }[] = [];
  const keep = (block: ChainInsert) => {
    const name = `${block.table} ${block.token}`;
    if (!tokens.has(name)) blocks.push(block);
    tokens.add(name);
  };
  const activitiesIn = (table: Exclude<ChainTable, 'tokens'>): ActivityRow[] =>
    blocks.flatMap((block) => (block.table === table ? block.rows : []));
  const tokenRows = (): TokenRow[] => blocks.flatMap((block) => (block.table === 'tokens' ? block.rows : []));
  const common = { ready: async () => true, close: async () => {} };
  return {
    blocks,
    failNext: (fault, leftover = 'nothing') => void faults.push({ fault, leftover }),
    activities: {
      ...common,
      async insert(block) {
        const { fault, leftover } = faults.shift() ?? {};
        if (leftover === 'token') tokens.add(`${block.table} ${block.token}`);
        if (fault === undefined || leftover === 'rows') keep(block);
        if (fault !== undefined) throw fault;
      },
      async storedOffsets(rows) {
        const standing = new Set(activitiesIn('activities').map(nameOf));
        return new Set(rows.filter((row) => standing.has(nameOf(row))).map(({ offset }) => offset));
      },
      standing: async (ids) => findStanding(activitiesIn('activity_versions'), new Set(ids)),
    },
    reader: {
      ...common,
      readPage: createReadPage(createVersionSource(activitiesIn, (row) => row)),
      readShownPage: createReadPage(createVersionSource(activitiesIn, toShownActivity)),
      readActivities: async (ids) => findLatest(activitiesIn('activities'), ids),
      async readToken(chain, contractAddress) {
        const own = tokenRows().filter((row) => row.chain === chain && row.contractAddress === contractAddress);
        return own.toSorted((a, b) => a.updatedAt - b.updatedAt).at(-1) ?? null;
      },
    },
  };
}

function findStanding(versions: readonly ActivityRow[], wanted: ReadonlySet<string>): Map<string, ActivityConstants> {
  const found = versions.filter(({ id }) => wanted.has(id));
  // Of several entries of a map the last one stays.
  found.sort((a, b) => b.updatedAt - a.updatedAt || (a.chain < b.chain ? 1 : -1));
  return new Map(
    found.map(({ id, chain, type, contractAddress, indexedAt }) => [id, { chain, type, contractAddress, indexedAt }]),
  );
}

/** Of each chain and id the last version. */
function findLatest(rows: readonly ActivityRow[], ids: readonly string[]): ActivityRow[] {
  const latest = new Map<string, ActivityRow>();
  for (const row of rows) {
    const name = `${row.chain} ${row.id}`;
    if (ids.includes(row.id) && row.updatedAt >= (latest.get(name)?.updatedAt ?? 0)) latest.set(name, row);
  }
  return [...latest.values()];
}

/** What tells a stored row from any other that had the same place in a log. */
const nameOf = ({ partition, offset, chain, updatedAt, id }: ActivityRow) =>
  `${partition} ${offset} ${chain} ${updatedAt} ${id}`;

function createVersionSource<Row extends Position>(
  activitiesIn: (table: 'activities' | 'activity_versions') => ActivityRow[],
  show: (row: ActivityRow) => Row,
): VersionSource<Row> {
  return {
    async positions({ chain, filters, gap, direction, limit, horizon }) {
      const found = activitiesIn('activities').filter(
        (row) => row.chain === chain && row.updatedAt < horizon && passesFilters(row, filters),
      );
      const sign = direction === 'next' ? 1 : -1;
      return found
        .filter((row) => isBeyond(row, gap, direction))
        .toSorted((a, b) => sign * comparePositions(a, b))
        .slice(0, limit);
    },
    async rows({ chain, horizon }, versions) {
      const below = activitiesIn('activity_versions').filter((row) => row.chain === chain && row.updatedAt < horizon);
      const isLater = (row: ActivityRow) =>
        below.some(({ id, updatedAt }) => id === row.id && updatedAt > row.updatedAt);
      const isWanted = (row: Position) => versions.some((position) => comparePositions(position, row) === 0);
      const rows = activitiesIn('activities').filter((row) => row.chain === chain && isWanted(row));
      return rows.map((row) => ({ row: show(row), isOutdated: isLater(row) }));
    },
  };
}
