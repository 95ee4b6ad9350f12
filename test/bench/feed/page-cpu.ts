import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NO_FILTERS, START_GAP } from '@playline/chain';
import type { Bench } from '../figure.ts';
import { findFreePort } from '../free-port.ts';
import type { Server } from '../gateway-servers.ts';
import { openLoadClient } from '../load-client.ts';
import { cpuSecondsOf, openProcess, pidListeningOn, waitFor } from '../processes.ts';
import { medianOf } from '../quantile.ts';
import { toPath } from './cases.ts';
import type { Feed } from './fill.ts';

const READERS = 8;
const WARM_UP_PAGES = 1_500;
const PAGES = 2_000;
const PAGES_MIN = 200;
const WINDOWS = 3;
const PAGE_SIZE = 100;

export interface PageCpu {
  readonly pagesPerCpuSecond: number;
  /** CPU of the engine's whole process for a page; not a number where it cannot be seen. */
  readonly engineMs: number;
  /** By the clock. */
  readonly pagesPerSecond: number;
}

/** Pages of everything from anywhere in the feed, by several readers at once, until so many were answered. */
export async function measurePageCpu(
  server: Pick<Server, 'port' | 'pid'>,
  feed: Feed,
  enginePort: number | null,
): Promise<PageCpu> {
  const count = Math.max(PAGES_MIN, Math.round(PAGES * feed.scale));
  const paths = Array.from({ length: count }, (_, at) => pathAt(feed, at / count));
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

function pathAt({ startUs, endUs }: Feed, share: number): string {
  const updatedAt = startUs + Math.floor((endUs - startUs) * 0.95 * share);
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

/** A bare `node:http` server that answers everything with the bytes of one page. */
export async function measureBareCpu(bench: Bench, server: Pick<Server, 'port'>, feed: Feed): Promise<PageCpu> {
  const folder = mkdtempSync(join(tmpdir(), 'playline-bench-page-'));
  const port = await findFreePort();
  const file = join(folder, 'page.json');
  const page = await fetch(`http://127.0.0.1:${server.port}${pathAt(feed, 0.5)}`);
  writeFileSync(file, await page.text());
  const environment = { ...bench.environment, HTTP_PORT: String(port), ANSWER_FILE: file };
  const bare = openProcess('test/bench/reference/http-server.ts', { environment });
  try {
    const answers = async () => (await fetch(`http://127.0.0.1:${port}`)).ok;
    await waitFor('the bare server answers', answers, { measured: bare, maxMs: 30_000 });
    return await measurePageCpu({ pid: bare.pid, port }, feed, null);
  } finally {
    await bare.close();
    rmSync(folder, { recursive: true });
  }
}
