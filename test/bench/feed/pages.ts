import { Agent, request } from 'node:http';
import { type ActivityFilters, type CursorPosition, createCursors, NO_FILTERS, START_GAP } from '@playline/chain';
import { type Direction, toTimestamp } from '@playline/contracts';
import type { Engine } from '../clickhouse.ts';
import { type Bench, scaled } from '../figure.ts';
import { sendAll } from '../load-client.ts';
import { withOpened } from '../opened.ts';
import { pidListeningOn, watchCpu } from '../processes.ts';
import { mediansOf } from '../quantile.ts';
import { CURSOR_SECRET, type Server, startBareServer, startPeer } from '../services.ts';
import { BUSY, type Feed } from './fill.ts';

export interface ReadCase {
  readonly name: string;
  readonly filters: ActivityFilters;
}

export function casesOf({ contracts, startUs, endUs }: Feed): readonly ReadCase[] {
  const timeOf = (fraction: number) => startUs + Math.floor((endUs - startUs) * fraction);
  const readCase = (name: string, filters: Partial<ActivityFilters>) => ({
    name,
    filters: { ...NO_FILTERS, ...filters },
  });
  return [
    readCase('everything', {}),
    readCase('a contract with 10 % of the activities', { contractAddress: contracts.big }),
    readCase('a contract with 0.5 % of the activities', { contractAddress: contracts.middle }),
    readCase('a contract with 0.001 % of the activities', { contractAddress: contracts.small }),
    readCase('a contract with two rows', { contractAddress: contracts.twoRows }),
    readCase('a type with 1 % of the activities', { type: 'burn' }),
    readCase('a type with 0.01 % of the activities', { type: 'withdrawal' }),
    readCase('a type with 1 %, a contract with 10 %', { type: 'burn', contractAddress: contracts.big }),
    readCase('indexed in a tenth of the year', { fromIndexedAt: timeOf(0.6), toIndexedAt: timeOf(0.7) }),
  ];
}

const cursors = createCursors({ keys: [{ id: 1, secret: Buffer.from(CURSOR_SECRET, 'hex') }] });

/** @param position null for the first page */
function toPath({ filters }: ReadCase, pageSize: number, position: CursorPosition | null): string {
  const query = new URLSearchParams({ page_size: String(pageSize) });
  const { fromIndexedAt, toIndexedAt, contractAddress, type } = filters;
  if (fromIndexedAt !== null) query.set('from_indexed_at', toTimestamp(fromIndexedAt));
  if (toIndexedAt !== null) query.set('to_indexed_at', toTimestamp(toIndexedAt));
  if (contractAddress !== null) query.set('contract_address', contractAddress);
  if (type !== null) query.set('activity_type', type);
  if (position !== null) query.set('page_cursor', cursors.encode(position, { chain: BUSY, filters }));
  return `/v1/chains/${BUSY}/activity-history?${query}`;
}

function withCursor(path: string, cursor: string): string {
  const url = new URL(path, 'http://127.0.0.1');
  url.searchParams.set('page_cursor', cursor);
  return url.pathname + url.search;
}

const SIZES = [100, 200];
const DIRECTIONS: readonly Direction[] = ['next', 'previous'];
// Ranges in which readers start, as fractions of the feed's time range. The last range contains the small parts.
const START_RANGES: readonly (readonly [number, number])[] = [
  [0, 0.05],
  [0.4, 0.6],
  [0.9, 0.995],
  [0.998, 1],
];
const STARTS_PER_RANGE = 5;
const CONSECUTIVE_PAGES = 3;

export interface ReadPage {
  readonly rows: number;
  readonly ms: number;
  /** Start and end of the request in epoch microseconds. */
  readonly fromUs: number;
  readonly toUs: number;
}

interface HistoryPage {
  readonly result: readonly unknown[];
  readonly page: { readonly previous_cursor: string; readonly next_cursor: string };
}

const nowUs = () => Math.floor((performance.timeOrigin + performance.now()) * 1_000);

function get(agent: Agent, port: number, path: string): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const sent = request({ agent, port, path, host: '127.0.0.1' }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }));
      response.on('error', reject);
    });
    sent.on('error', reject).end();
  });
}

// Reads pages of every size, in both directions, from random positions in each start range, over one connection.
export async function readPages({ port }: Pick<Server, 'port'>, feed: Feed, readCase: ReadCase): Promise<ReadPage[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const startsPerRange = scaled(feed, STARTS_PER_RANGE);
  const pages: ReadPage[] = [];
  const readPage = async (path: string) => {
    const [fromUs, startMs] = [nowUs(), performance.now()];
    const { status, text } = await get(agent, port, path);
    const [ms, toUs] = [performance.now() - startMs, nowUs()];
    if (status !== 200) throw new Error(`a page request failed with status ${status}: ${text.slice(0, 200)}`);
    const { result, page } = JSON.parse(text) as HistoryPage;
    pages.push({ rows: result.length, ms, fromUs, toUs });
    return page;
  };
  try {
    for (const size of SIZES)
      for (const direction of DIRECTIONS)
        for (const range of START_RANGES)
          for (let start = 0; start < startsPerRange; start++) {
            const isFirst = range[0] === 0 && start === 0 && direction === 'next';
            const first = toPath(readCase, size, isFirst ? null : pickPosition(feed, range, direction));
            for (let path = first, read = 0; read < CONSECUTIVE_PAGES; read++) {
              const page = await readPage(path);
              path = withCursor(first, direction === 'next' ? page.next_cursor : page.previous_cursor);
            }
          }
  } finally {
    agent.destroy();
  }
  return pages;
}

function pickPosition(feed: Feed, [from, to]: readonly [number, number], direction: Direction): CursorPosition {
  const fraction = from + Math.random() * (to - from);
  const updatedAt = feed.startUs + Math.floor(fraction * (feed.endUs - feed.startUs));
  return { direction, gap: { ...START_GAP, updatedAt } };
}

export type PageCost = Awaited<ReturnType<typeof readCosts>>[number];

// Reads each page's cost from ClickHouse's query log. Queries are assigned to pages by time, so nothing else may query
// this database during the measurement.
export async function readCosts(engine: Engine, pages: readonly ReadPage[]) {
  const [first, last] = [pages[0], pages.at(-1)];
  if (first === undefined || last === undefined) return [];
  await engine.query('SYSTEM FLUSH LOGS query_log');
  const time = 'toUnixTimestamp64Micro(query_start_time_microseconds)';
  const rows = await engine.queryRows(
    `SELECT ${time}, read_rows, ProfileEvents['OSCPUVirtualTimeMicroseconds'] FROM system.query_log
     WHERE type = 'QueryFinish' AND current_database = currentDatabase() AND is_initial_query
       AND ${time} >= ${first.fromUs} AND ${time} <= ${last.toUs} ORDER BY 1 FORMAT TSV SETTINGS log_queries = 0`,
  );
  const queries = rows.map((row) => row.map(Number));
  return pages.map(({ fromUs, toUs }) => {
    const matching = queries.filter(([time = 0]) => time >= fromUs && time <= toUs);
    const sum = (column: number) => matching.reduce((total, query) => total + (query[column] ?? 0), 0);
    return { queries: matching.length, readRows: sum(1), cpuMs: sum(2) / 1_000 };
  });
}

const RUNS = 3;
const PAGE_SIZE = 100;

interface PlainPage {
  readonly ms: number;
  readonly readRows: number;
}

export type PlainPages = Awaited<ReturnType<typeof measurePlainPages>>;

export async function measurePlainPages(engine: Engine, feed: Feed, { filters }: ReadCase) {
  const { fromIndexedAt, toIndexedAt, contractAddress, type } = filters;
  const time = (us: number) => `fromUnixTimestamp64Micro(${us}, 'UTC')`;
  const where = [
    `chain = '${BUSY}'`,
    ...(contractAddress === null ? [] : [`contract = toFixedString(unhex('${contractAddress.slice(2)}'), 20)`]),
    ...(type === null ? [] : [`type = '${type}'`]),
    ...(fromIndexedAt === null ? [] : [`indexed_at >= ${time(fromIndexedAt)}`]),
    ...(toIndexedAt === null ? [] : [`indexed_at <= ${time(toIndexedAt)}`]),
  ].join(' AND ');
  const middle = Math.floor((feed.startUs + feed.endUs) / 2);
  const select = 'SELECT * FROM activities WHERE';
  const order = `ORDER BY updated_at, id LIMIT ${PAGE_SIZE}`;
  const before = await engine.query(`SELECT count() FROM activities WHERE ${where} AND updated_at < ${time(middle)}`);
  return {
    tuple: await measure(
      engine,
      `${select} ${where} AND (updated_at, id) > (${time(middle)}, '${START_GAP.id}') ${order}`,
    ),
    offset: await measure(engine, `${select} ${where} ${order} OFFSET ${before}`),
  };
}

async function measure(engine: Engine, sql: string) {
  const results: PlainPage[] = [];
  for (let run = 0; run < RUNS; run++) results.push(await engine.measure(`${sql} FORMAT JSONEachRow`));
  return mediansOf(results.map(({ ms, readRows }) => ({ ms, readRows })));
}

const READERS = 8;
const WARM_UP_PAGES = 1_500;
const PAGES = 2_000;
const PAGES_MIN = 200;
const WINDOWS = 3;

export interface PageCpu {
  readonly pagesPerCpuSecond: number;
  readonly engineMs: number;
  readonly pagesPerSecond: number;
}

interface PageCpuOptions {
  readonly enginePort: number | null;
  /** Returns the path of the page that starts at a time in epoch microseconds. Default: a chain API path. */
  readonly pathOf?: (updatedAt: number) => string;
}

export async function measurePageCpu(
  server: Pick<Server, 'port' | 'pid'>,
  feed: Feed,
  { enginePort, pathOf = pathAt }: PageCpuOptions,
): Promise<PageCpu> {
  const count = scaled(feed, PAGES, PAGES_MIN);
  const requests = Array.from({ length: count }, (_, index) =>
    Buffer.from(`GET ${pathOf(timeAt(feed, index / count))} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`),
  );
  const send = (list: readonly Buffer[]) => sendAll(server.port, list, { connections: READERS, expected: 200 });
  await send(requests.slice(0, WARM_UP_PAGES));
  const pids = [server.pid, enginePort === null ? null : pidListeningOn(enginePort)];
  const windows: PageCpu[] = [];
  for (let window = 0; window < WINDOWS; window++) {
    const [watches, startMs] = [pids.map(watchCpu), performance.now()];
    await send(requests);
    const ms = performance.now() - startMs;
    const [own = 0, engine = 0] = watches.map((spent) => spent());
    windows.push({
      pagesPerCpuSecond: count / own,
      engineMs: (engine * 1_000) / count,
      pagesPerSecond: (count * 1_000) / ms,
    });
  }
  return mediansOf(windows);
}

const timeAt = ({ startUs, endUs }: Feed, fraction: number): number =>
  startUs + Math.floor((endUs - startUs) * 0.95 * fraction);

function pathAt(updatedAt: number): string {
  const position = { direction: 'next', gap: { ...START_GAP, updatedAt } } as const;
  return toPath({ name: 'everything', filters: NO_FILTERS }, PAGE_SIZE, position);
}

export const measureBareCpu = (bench: Bench, { port }: Pick<Server, 'port'>, feed: Feed): Promise<PageCpu> =>
  withOpened(async (keep) => {
    const page = await fetch(`http://127.0.0.1:${port}${pathAt(timeAt(feed, 0.5))}`);
    const bare = keep(await startBareServer(bench, Buffer.from(await page.arrayBuffer())));
    return measurePageCpu(bare, feed, { enginePort: null });
  });

// Measures a bare proxy to ClickHouse that reads as many rows per page from the same positions.
export const measureProxyCpu = (bench: Bench, engine: Engine, feed: Feed): Promise<PageCpu> =>
  withOpened(async (keep) => {
    const { url, user, password } = bench.stores.clickhouse;
    const time = (us: string) => `fromUnixTimestamp64Micro(toInt64(${us}), 'UTC')`;
    const endUs = `{at} + ${Math.ceil((PAGE_SIZE * 2 * (feed.endUs - feed.startUs)) / feed.rows)}`;
    const pathOf = (updatedAt: number) => `/?at=${updatedAt}`;
    const environment = {
      ENGINE_URL: `${url}/?database=${bench.database}&wait_end_of_query=1&max_threads=1`,
      ENGINE_USER: user,
      ENGINE_PASSWORD: password,
      STATEMENT:
        `SELECT members FROM activity_feeds WHERE feed = '${BUSY} * *' AND updated_at >= ${time('{at}')} ` +
        `AND updated_at < ${time(endUs)} ORDER BY feed, updated_at, id LIMIT ${PAGE_SIZE} FORMAT TSVRaw`,
    };
    const proxy = keep(
      await startPeer(bench, 'reference/engine-proxy', { environment, readyPath: pathOf(feed.startUs) }),
    );
    return measurePageCpu(proxy, feed, { enginePort: engine.port, pathOf });
  });
