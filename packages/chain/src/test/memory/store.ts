import { randomUUID } from 'node:crypto';
import { comparePositions, isBeyond } from '../../cursor.ts';
import { createReadPage, type FeedEntry, type FeedSource } from '../../page.ts';
import type { ActivityConstants, ActivityRow, TokenRow } from '../../rows.ts';
import type { ActivityStore, ChainInsert, ChainStore, Supersession } from '../../store.ts';
import { type ActivityFilters, findSupersessions } from '../../store.ts';
import type { Watermarks } from '../../watermarks.ts';
import { toShownActivity } from '../../wire.ts';

/**
 * What a failed insert stored: `nothing`; `rows` with their token if only the response was lost; or only the `token`
 * if ClickHouse was killed between recording the token and renaming the part.
 */
export type Leftover = 'nothing' | 'rows' | 'token';

/** An in-memory store for tests of code that writes or reads chain data. */
export interface MemoryChain {
  readonly activities: ActivityStore;
  readonly reader: ChainStore;
  readonly blocks: readonly ChainInsert[];
  failNext(fault: Error, leftover?: Leftover): void;
}

export function createMemoryChain(): MemoryChain {
  const blocks: ChainInsert[] = [];
  const tokens = new Set<string>();
  const faults: { fault: Error; leftover: Leftover }[] = [];
  const store = (block: ChainInsert) => {
    const name = `${block.table} ${block.token}`;
    if (!tokens.has(name)) blocks.push(block);
    tokens.add(name);
  };
  const entries = (): (ActivityRow | Supersession)[] =>
    blocks.flatMap((block) => (block.table === 'activity_feeds' ? block.rows : []));
  const activitiesIn = (table: 'activities' | 'activity_ids'): ActivityRow[] =>
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
        if (fault === undefined || leftover === 'rows') store(block);
        if (fault !== undefined) throw fault;
      },
      async storedOffsets(rows) {
        const stored = new Set(activitiesIn('activities').map(nameOf));
        return new Set(rows.filter((row) => stored.has(nameOf(row))).map(({ offset }) => offset));
      },
      rowsBetween: async (partition, after, end) =>
        activitiesIn('activities').filter((row) => isBetween(row, { partition, after, end })),
      lastBefore: async (us, chain, ids) => {
        const before = activitiesIn('activity_ids').filter((row) => row.chain === chain && row.updatedAt < us);
        return new Map(findLatest(before, ids).map(({ id, updatedAt }) => [id, updatedAt]));
      },
      constantsOf: async (ids) => findConstants(activitiesIn('activity_ids'), new Set(ids)),
    },
    reader: {
      ...common,
      // Without a time limit, because a page that reaches it is short.
      readPage: createReadPage(createFeedSource(entries), Number.POSITIVE_INFINITY),
      readActivities: async (ids) => findLatest(activitiesIn('activities'), ids),
      async readToken(chain, contractAddress) {
        const versions = tokenRows().filter((row) => row.chain === chain && row.contractAddress === contractAddress);
        return versions.toSorted((a, b) => a.updatedAt - b.updatedAt).at(-1) ?? null;
      },
      async findToken(chains) {
        const rows = tokenRows().filter(({ chain }) => chains.includes(chain));
        return rows.toSorted((a, b) => a.updatedAt - b.updatedAt).at(-1) ?? null;
      },
    },
  };
}

function findConstants(versions: readonly ActivityRow[], wanted: ReadonlySet<string>): Map<string, ActivityConstants> {
  const found = versions.filter(({ id }) => wanted.has(id));
  // In descending order, because a Map retains the last of several entries with the same key.
  found.sort((a, b) => b.updatedAt - a.updatedAt || (a.chain < b.chain ? 1 : -1));
  return new Map(
    found.map(({ id, chain, type, contractAddress, indexedAt }) => [id, { chain, type, contractAddress, indexedAt }]),
  );
}

function findLatest(rows: readonly ActivityRow[], ids: readonly string[]): ActivityRow[] {
  const latest = new Map<string, ActivityRow>();
  for (const row of rows) {
    const name = `${row.chain} ${row.id}`;
    if (ids.includes(row.id) && row.updatedAt >= (latest.get(name)?.updatedAt ?? 0)) latest.set(name, row);
  }
  return [...latest.values()];
}

const isBetween = (row: ActivityRow, { partition, after, end }: { partition: number; after: number; end: number }) =>
  row.partition === partition && row.updatedAt > after && row.updatedAt <= end;

/** Identifies a row, even if a lost log used the same offset. */
const nameOf = ({ partition, offset, chain, updatedAt, id }: ActivityRow) =>
  `${partition} ${offset} ${chain} ${updatedAt} ${id}`;

export function passesFilters(row: ActivityConstants, filters: ActivityFilters): boolean {
  const { fromIndexedAt, toIndexedAt, contractAddress, type } = filters;
  return (
    (fromIndexedAt === null || row.indexedAt >= fromIndexedAt) &&
    (toIndexedAt === null || row.indexedAt <= toIndexedAt) &&
    (contractAddress === null || row.contractAddress === contractAddress) &&
    (type === null || row.type === type)
  );
}

/** Creates a feed of all inserted entries. A version and its supersession are adjacent. */
function createFeedSource(entries: () => readonly (ActivityRow | Supersession)[]): FeedSource {
  return {
    async entries({ chain, filters, gap, direction, horizon }, limit) {
      const sign = direction === 'next' ? 1 : -1;
      const found = entries().filter(
        (row) => row.chain === chain && row.updatedAt < horizon && passesFilters(row, filters),
      );
      const inOrder = found
        .filter((row) => isBeyond(row, gap, direction))
        .toSorted((a, b) => sign * comparePositions(a, b));
      const read = inOrder.slice(0, limit);
      return { entries: read.map((row) => toEntry(row, horizon)), isFull: read.length === limit, continueAt: null };
    },
  };
}

function toEntry(row: ActivityRow | Supersession, horizon: number): FeedEntry {
  if (!('supersededAt' in row)) return { ...toShownActivity(row), isOutdated: false };
  const { updatedAt, id, supersededAt } = row;
  return { updatedAt, id, partition: 0, isOutdated: supersededAt < horizon, members: Buffer.alloc(0) };
}

/** Stores versions as the writer does: one block with new tokens. Works with any store. */
export async function putActivities(
  { insert, lastBefore }: Pick<ActivityStore, 'insert' | 'lastBefore'>,
  rows: readonly ActivityRow[],
): Promise<void> {
  const withToken = () => ({ token: randomUUID(), signal: new AbortController().signal });
  const supersessions = await findSupersessions(rows, lastBefore);
  await insert({ table: 'activities', rows, ...withToken() });
  await insert({ table: 'activity_ids', rows, ...withToken() });
  await insert({ table: 'activity_feeds', rows: [...rows, ...supersessions], ...withToken() });
}

export function openMemoryWatermarks(): Watermarks {
  const stored = new Map<number, number>();
  return {
    publish: async (partition, us) => void stored.set(partition, Math.max(us, stored.get(partition) ?? 0)),
    read: async (partition) => stored.get(partition) ?? null,
    ready: async () => true,
    close: async () => {},
  };
}
