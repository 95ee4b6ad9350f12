import { NO_FILTERS, START_GAP } from '@playline/chain';
import type { Engine } from '../clickhouse.ts';
import { type Bench, scaled } from '../figure.ts';
import { sendAll } from '../load-client.ts';
import { withOpened } from '../opened.ts';
import { pidListeningOn, watchCpu } from '../processes.ts';
import { mediansOf } from '../quantile.ts';
import { type Server, startPeer } from '../services.ts';
import { startBareServer } from '../start-bare-server.ts';
import { toPath } from './cases.ts';
import { BUSY, type Feed } from './fill.ts';

const READERS = 8;
const WARM_UP_PAGES = 1_500;
const PAGES = 2_000;
const PAGES_MIN = 200;
const WINDOWS = 3;
const PAGE_SIZE = 100;

export interface PageCpu {
  readonly pagesPerCpuSecond: number;
  readonly engineMs: number;
  readonly pagesPerSecond: number;
}

interface PageCpuOptions {
  readonly enginePort: number | null;
  /** The path of a page that begins at a time in epoch microseconds. Default: that of the chain API. */
  readonly pathOf?: (updatedAt: number) => string;
}

/** Reads unfiltered pages from all over the feed with several concurrent readers. */
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

const timeAt = ({ startUs, endUs }: Feed, share: number): number =>
  startUs + Math.floor((endUs - startUs) * 0.95 * share);

function pathAt(updatedAt: number): string {
  const position = { direction: 'next', gap: { ...START_GAP, updatedAt } } as const;
  return toPath({ name: 'everything', filters: NO_FILTERS }, PAGE_SIZE, position);
}

/** A bare `node:http` server that always answers with the bytes of one page. */
export const measureBareCpu = (bench: Bench, { port }: Pick<Server, 'port'>, feed: Feed): Promise<PageCpu> =>
  withOpened(async (keep) => {
    const page = await fetch(`http://127.0.0.1:${port}${pathAt(timeAt(feed, 0.5))}`);
    const bare = keep(await startBareServer(bench, Buffer.from(await page.arrayBuffer())));
    return measurePageCpu(bare, feed, { enginePort: null });
  });

/**
 * A bare proxy in front of ClickHouse. Each page is the text of as many rows from the same positions, so the process
 * waits for ClickHouse and wakes up as often.
 */
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
