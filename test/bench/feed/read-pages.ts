import { Agent, request } from 'node:http';
import { type CursorPosition, START_GAP } from '@playline/chain';
import type { Direction } from '@playline/contracts';
import type { Engine } from '../clickhouse.ts';
import { scaled } from '../figure.ts';
import type { Server } from '../services.ts';
import { type ReadCase, toPath, withCursor } from './cases.ts';
import type { Feed } from './fill.ts';

const SIZES = [100, 200];
const DIRECTIONS: readonly Direction[] = ['next', 'previous'];
/** Where readers begin, as shares of the feed's time. The last is the present, where parts are small. */
const STARTS: readonly (readonly [number, number])[] = [
  [0, 0.05],
  [0.4, 0.6],
  [0.9, 0.995],
  [0.998, 1],
];
const BEGINNINGS = 5;
const CONSECUTIVE_PAGES = 3;

export interface ReadPage {
  readonly rows: number;
  readonly ms: number;
  /** Epoch microseconds. The queries of the page were sent between these. */
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
    const sent = request({ agent, port, path, host: '127.0.0.1' }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString() }));
      answer.on('error', reject);
    });
    sent.on('error', reject).end();
  });
}

/**
 * Reads pages of a case in every size, direction and start over one connection, each from a position that was not read
 * just before.
 */
export async function readPages({ port }: Pick<Server, 'port'>, feed: Feed, readCase: ReadCase): Promise<ReadPage[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const beginnings = scaled(feed, BEGINNINGS);
  const pages: ReadPage[] = [];
  const readPage = async (path: string) => {
    const [fromUs, startMs] = [nowUs(), performance.now()];
    const { status, text } = await get(agent, port, path);
    const [ms, toUs] = [performance.now() - startMs, nowUs()];
    if (status !== 200) throw new Error(`a page was answered with ${status}: ${text.slice(0, 200)}`);
    const { result, page } = JSON.parse(text) as HistoryPage;
    pages.push({ rows: result.length, ms, fromUs, toUs });
    return page;
  };
  try {
    for (const size of SIZES)
      for (const direction of DIRECTIONS)
        for (const start of STARTS)
          for (let beginning = 0; beginning < beginnings; beginning++) {
            const isFirst = start[0] === 0 && beginning === 0 && direction === 'next';
            const first = toPath(readCase, size, isFirst ? null : pick(feed, start, direction));
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

function pick({ startUs, endUs }: Feed, [from, to]: readonly [number, number], direction: Direction): CursorPosition {
  const share = from + Math.random() * (to - from);
  const updatedAt = startUs + Math.floor(share * (endUs - startUs));
  return { direction, gap: { ...START_GAP, updatedAt } };
}

export interface PageCost {
  readonly queries: number;
  readonly readRows: number;
  readonly cpuMs: number;
}

/**
 * What ClickHouse read for each page, from its query log: a query belongs to the page that was requested at that moment.
 * Nothing else may query this database in the meantime.
 */
export async function readCosts(engine: Engine, pages: readonly ReadPage[]): Promise<PageCost[]> {
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
    const own = queries.filter(([time = 0]) => time >= fromUs && time <= toUs);
    const sum = (column: number) => own.reduce((total, query) => total + (query[column] ?? 0), 0);
    return { queries: own.length, readRows: sum(1), cpuMs: sum(2) / 1_000 };
  });
}
