import { Agent, request } from 'node:http';
import { type CursorPosition, START_GAP } from '@playline/chain';
import type { Direction } from '@playline/contracts';
import type { Engine } from '../clickhouse.ts';
import type { Server } from '../gateway-servers.ts';
import { type ReadCase, toPath, withCursor } from './cases.ts';
import type { Feed } from './fill.ts';

const SIZES = [100, 200];
const DIRECTIONS: readonly Direction[] = ['next', 'previous'];
/** Places in the feed at which readers begin, as shares of its time. The last is the present, where parts are small. */
const PLACES: readonly (readonly [number, number])[] = [
  [0, 0.05],
  [0.4, 0.6],
  [0.9, 0.995],
  [0.998, 1],
];
/** Number of beginnings for each size, direction and place. */
const BEGINNINGS = 5;
/** Number of consecutive pages from each beginning. */
const PAGES_IN_A_ROW = 3;

/** A page as its reader saw it. */
export interface ReadPage {
  readonly rows: number;
  readonly ms: number;
  /** Epoch microseconds. The queries of the page were sent between these. */
  readonly fromUs: number;
  readonly toUs: number;
}

const nowUs = () => Math.floor((performance.timeOrigin + performance.now()) * 1_000);

/** A reader with one keep-alive connection. */
export function openReader({ port }: Pick<Server, 'port'>) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const ask = (path: string) =>
    new Promise<{ status: number; text: string }>((resolve, reject) => {
      const asked = request({ agent, port, path, host: '127.0.0.1' }, (answer) => {
        const chunks: Buffer[] = [];
        answer.on('data', (chunk: Buffer) => chunks.push(chunk));
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString() }));
        answer.on('error', reject);
      });
      asked.on('error', reject).end();
    });
  return {
    async read(path: string): Promise<ReadPage & { readonly page: HistoryPage }> {
      const [fromUs, startMs] = [nowUs(), performance.now()];
      const { status, text } = await ask(path);
      const [ms, toUs] = [performance.now() - startMs, nowUs()];
      if (status !== 200) throw new Error(`a page was answered with ${status}: ${text.slice(0, 200)}`);
      const page = JSON.parse(text) as HistoryPage;
      return { rows: page.result.length, ms, fromUs, toUs, page };
    },
    close: () => agent.destroy(),
  };
}

interface HistoryPage {
  readonly result: readonly unknown[];
  readonly page: { readonly previous_cursor: string; readonly next_cursor: string };
}

/**
 * Reads pages of a case in every size, direction and place. Requests go one at a time, each from a place that was not
 * read just before.
 */
export async function readPages(server: Pick<Server, 'port'>, feed: Feed, readCase: ReadCase): Promise<ReadPage[]> {
  const reader = openReader(server);
  const beginnings = Math.max(1, Math.round(BEGINNINGS * feed.scale));
  const pages: ReadPage[] = [];
  try {
    for (const size of SIZES)
      for (const direction of DIRECTIONS)
        for (const place of PLACES)
          for (let beginning = 0; beginning < beginnings; beginning++) {
            const isStart = place[0] === 0 && beginning === 0 && direction === 'next';
            const path = toPath(readCase, size, isStart ? null : pick(feed, place, direction));
            pages.push(...(await readOn(reader, path, direction)));
          }
  } finally {
    reader.close();
  }
  return pages;
}

function pick({ startUs, endUs }: Feed, [from, to]: readonly [number, number], direction: Direction): CursorPosition {
  const share = from + Math.random() * (to - from);
  const updatedAt = startUs + Math.floor(share * (endUs - startUs));
  return { direction, gap: { ...START_GAP, updatedAt } };
}

async function readOn(reader: ReturnType<typeof openReader>, path: string, direction: Direction): Promise<ReadPage[]> {
  const pages: ReadPage[] = [];
  for (let asked = path; pages.length < PAGES_IN_A_ROW; ) {
    const { page, ...read } = await reader.read(asked);
    pages.push(read);
    asked = withCursor(path, direction === 'next' ? page.page.next_cursor : page.page.previous_cursor);
  }
  return pages;
}

/**
 * What ClickHouse read for each page, from its query log. Only one reader runs, so a query belongs to the page that was
 * requested at that moment. Nothing else may query this database meanwhile.
 */
export async function readCosts(engine: Engine, database: string, pages: readonly ReadPage[]): Promise<PageCost[]> {
  const [first, last] = [pages[0], pages.at(-1)];
  if (first === undefined || last === undefined) return [];
  await engine.ask('SYSTEM FLUSH LOGS query_log');
  const time = 'toUnixTimestamp64Micro(query_start_time_microseconds)';
  const answer = await engine.ask(
    `SELECT ${time}, read_rows, ProfileEvents['OSCPUVirtualTimeMicroseconds'] FROM system.query_log
     WHERE type = 'QueryFinish' AND current_database = '${database}' AND is_initial_query
       AND ${time} >= ${first.fromUs} AND ${time} <= ${last.toUs} ORDER BY 1 FORMAT TSV SETTINGS log_queries = 0`,
  );
  const questions = answer === '' ? [] : answer.split('\n').map((line) => line.split('\t').map(Number));
  return pages.map(({ fromUs, toUs }) => {
    const own = questions.filter(([at = 0]) => at >= fromUs && at <= toUs);
    const sum = (column: number) => own.reduce((total, question) => total + (question[column] ?? 0), 0);
    return { questions: own.length, readRows: sum(1), cpuMs: sum(2) / 1_000 };
  });
}

export interface PageCost {
  readonly questions: number;
  readonly readRows: number;
  readonly cpuMs: number;
}
