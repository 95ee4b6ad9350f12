import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NO_FILTERS, START_GAP } from '@playline/chain';
import type { Engine } from '../clickhouse.ts';
import type { Bench } from '../figure.ts';
import { findFreePort } from '../free-port.ts';
import type { Server } from '../gateway-servers.ts';
import { openLoadClient } from '../load-client.ts';
import { cpuSecondsOf, openProcess, pidListeningOn, waitFor } from '../processes.ts';
import { medianOf } from '../quantile.ts';
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
  /** CPU time of the ClickHouse process per page; NaN when it cannot be read. */
  readonly engineMs: number;
  /** By wall-clock time. */
  readonly pagesPerSecond: number;
}

interface PageCpuOptions {
  /** Null when the process does not use ClickHouse. */
  readonly enginePort: number | null;
  /** The path of a page that begins at a time in epoch microseconds. Default: that of the chain API. */
  readonly pathOf?: (updatedAt: number) => string;
}

/**
 * Reads unfiltered pages from random places of the feed with several readers at once, until this many were answered.
 */
export async function measurePageCpu(
  server: Pick<Server, 'port' | 'pid'>,
  feed: Feed,
  { enginePort, pathOf = pathAt }: PageCpuOptions,
): Promise<PageCpu> {
  const count = Math.max(PAGES_MIN, Math.round(PAGES * feed.scale));
  const paths = Array.from({ length: count }, (_, at) => pathOf(timeAt(feed, at / count)));
  await answer(server.port, paths.slice(0, WARM_UP_PAGES));
  const windows: PageCpu[] = [];
  const enginePid = enginePort === null ? null : pidListeningOn(enginePort);
  const spent = () => [cpuSecondsOf(server.pid), enginePid === null ? Number.NaN : cpuSecondsOf(enginePid)] as const;
  for (let window = 0; window < WINDOWS; window++) {
    const [before, startMs] = [spent(), performance.now()];
    await answer(server.port, paths);
    const [after, ms] = [spent(), performance.now() - startMs];
    windows.push({
      pagesPerCpuSecond: count / (after[0] - before[0]),
      engineMs: ((after[1] - before[1]) * 1_000) / count,
      pagesPerSecond: (count * 1_000) / ms,
    });
  }
  const median = (name: keyof PageCpu) => medianOf(windows.map((each) => each[name]));
  return {
    pagesPerCpuSecond: median('pagesPerCpuSecond'),
    engineMs: median('engineMs'),
    pagesPerSecond: median('pagesPerSecond'),
  };
}

const timeAt = ({ startUs, endUs }: Feed, share: number): number =>
  startUs + Math.floor((endUs - startUs) * 0.95 * share);

function pathAt(updatedAt: number): string {
  const place = { direction: 'next', gap: { ...START_GAP, updatedAt } } as const;
  return toPath({ name: 'everything', filters: NO_FILTERS }, PAGE_SIZE, place);
}

async function answer(port: number, paths: readonly string[]): Promise<void> {
  let next = 0;
  const read = async () => {
    const client = await openLoadClient(port);
    try {
      for (let path = paths[next++]; path !== undefined; path = paths[next++]) {
        const status = await client.send(Buffer.from(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`));
        if (status !== 200) throw new Error(`a page was answered with ${status}`);
      }
    } finally {
      client.close();
    }
  };
  await Promise.all(Array.from({ length: READERS }, read));
}

/** A bare `node:http` server that always answers with the bytes of one page. */
export async function measureBareCpu(bench: Bench, server: Pick<Server, 'port'>, feed: Feed): Promise<PageCpu> {
  const folder = mkdtempSync(join(tmpdir(), 'playline-bench-page-'));
  const port = await findFreePort();
  const file = join(folder, 'page.json');
  const page = await fetch(`http://127.0.0.1:${server.port}${pathAt(timeAt(feed, 0.5))}`);
  writeFileSync(file, await page.text());
  const environment = { ...bench.environment, HTTP_PORT: String(port), ANSWER_FILE: file };
  const bare = openProcess('test/bench/reference/http-server.ts', { environment });
  try {
    const answers = async () => (await fetch(`http://127.0.0.1:${port}`)).ok;
    await waitFor('the bare server answers', answers, { measured: bare, maxMs: 30_000 });
    return await measurePageCpu({ pid: bare.pid, port }, feed, { enginePort: null });
  } finally {
    await bare.close();
    rmSync(folder, { recursive: true });
  }
}

/**
 * A bare proxy in front of ClickHouse. Each page is the text of as many rows from the same places, so the process waits
 * for ClickHouse and wakes up as often.
 */
export async function measureProxyCpu(bench: Bench, engine: Engine, feed: Feed): Promise<PageCpu> {
  const port = await findFreePort();
  const { url, user, password } = bench.stores.clickhouse;
  const time = (us: string) => `fromUnixTimestamp64Micro(toInt64(${us}), 'UTC')`;
  const endUs = `{at} + ${Math.ceil((PAGE_SIZE * 2 * (feed.endUs - feed.startUs)) / feed.rows)}`;
  const environment = {
    ...bench.environment,
    HTTP_PORT: String(port),
    ENGINE_URL: `${url}/?database=${bench.database}&wait_end_of_query=1&max_threads=1`,
    ENGINE_USER: user,
    ENGINE_PASSWORD: password,
    STATEMENT:
      `SELECT members FROM activity_feeds WHERE feed = '${BUSY} * *' AND updated_at >= ${time('{at}')} ` +
      `AND updated_at < ${time(endUs)} ORDER BY feed, updated_at, id LIMIT ${PAGE_SIZE} FORMAT TSVRaw`,
  };
  const proxy = openProcess('test/bench/reference/engine-proxy.ts', { environment });
  const pathOf = (updatedAt: number) => `/?at=${updatedAt}`;
  try {
    const answers = async () => (await fetch(`http://127.0.0.1:${port}${pathOf(feed.startUs)}`)).ok;
    await waitFor('the bare proxy answers', answers, { measured: proxy, maxMs: 30_000 });
    return await measurePageCpu({ pid: proxy.pid, port }, feed, { enginePort: engine.port, pathOf });
  } finally {
    await proxy.close();
  }
}
