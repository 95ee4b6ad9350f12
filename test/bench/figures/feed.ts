import { createEngine, type Engine } from '../clickhouse.ts';
import { openConsumerService } from '../consumer-process.ts';
import { casesOf, type ReadCase } from '../feed/cases.ts';
import { openChainApi } from '../feed/chain-api.ts';
import { type Feed, fillFeed, mergeAgain } from '../feed/fill.ts';
import { measureBareCpu, measurePageCpu, measureProxyCpu, type PageCpu } from '../feed/page-cpu.ts';
import { measurePlainPages, type PlainPages } from '../feed/plain-pages.ts';
import { type PageCost, type ReadPage, readCosts, readPages } from '../feed/read-pages.ts';
import { openStream, STREAM_PER_SECOND } from '../feed/stream.ts';
import { type Bar, type Bench, type Figure, type Row, toRow } from '../figure.ts';
import type { Server } from '../gateway-servers.ts';
import { quantileOf } from '../quantile.ts';

const PAGE_MS: Bar = { of: 'ours', bound: 'at most', must: 25, aim: 10 };
const READ_ROWS: Bar = { of: 'ours', bound: 'at most', must: 50_000, aim: 20_000 };
const CPU_RATE: Bar = { of: 'ours', bound: 'at least', must: 3_000, aim: 6_000 };
/** Compiled code and ClickHouse's caches are part of a running service. */
const WARM_UP_TURNS = 1;

/** Pages of activity-history over a year of a busy chain: latency, rows read, and CPU, by filter. */
export const feed: Figure = {
  name: 'feed',
  optional: true,
  async measure(bench) {
    const engine = createEngine(bench);
    const filled = await fillFeed(bench);
    console.error(`filled with ${filled.rows} versions in ${Math.round(filled.seconds)} s`);
    const server = await openChainApi(bench);
    try {
      const cases = casesOf(filled);
      for (let turn = 0; turn < WARM_UP_TURNS; turn++) for (const each of cases) await readPages(server, filled, each);
      const idle = await measureIdle(bench, { engine, server, filled });
      const cpu = await measurePageCpu(server, filled, { enginePort: engine.port });
      const bare = await measureBareCpu(bench, server, filled);
      const proxy = await measureProxyCpu(bench, engine, filled);
      const busy = await measureBusy(bench, { server, filled });
      return [...cases.flatMap((each) => toRows(each, idle, busy)), ...toCpuRows({ cpu, bare, proxy })];
    } finally {
      await server.close();
    }
  },
};

interface Scene {
  readonly engine: Engine;
  readonly server: Server;
  readonly filled: Feed;
}

interface IdlePages {
  readonly pages: readonly ReadPage[];
  readonly costs: readonly PageCost[];
  readonly plain: PlainPages;
}

async function measureIdle(bench: Bench, { engine, server, filled }: Scene): Promise<Map<ReadCase['name'], IdlePages>> {
  const idle = new Map<string, IdlePages>();
  for (const each of casesOf(filled)) {
    const pages = await readPages(server, filled, each);
    const costs = await readCosts(engine, bench.database, pages);
    idle.set(each.name, { pages, costs, plain: await measurePlainPages(engine, filled, each) });
  }
  return idle;
}

/** The same pages while a writer stores new activities and ClickHouse merges them. */
async function measureBusy(
  bench: Bench,
  { server, filled }: Omit<Scene, 'engine'>,
): Promise<Map<ReadCase['name'], readonly ReadPage[]>> {
  await mergeAgain(bench);
  const writer = await openConsumerService(bench, 'activity-writer');
  try {
    const stream = await openStream(bench);
    const busy = new Map<string, readonly ReadPage[]>();
    try {
      for (const each of casesOf(filled)) busy.set(each.name, await readPages(server, filled, each));
    } finally {
      console.error(`${await stream.close()} activities came in meanwhile`);
    }
    return busy;
  } finally {
    await writer.close();
  }
}

const ofMs = (pages: readonly ReadPage[], q: number) =>
  quantileOf(
    pages.map(({ ms }) => ms),
    q,
  );

function toRows({ name }: ReadCase, idleOf: Map<string, IdlePages>, busyOf: Map<string, readonly ReadPage[]>): Row[] {
  const [idle, busy] = [idleOf.get(name), busyOf.get(name)];
  if (idle === undefined || busy === undefined) throw new Error(`no pages of ${name}`);
  const { pages, costs, plain } = idle;
  const of = (column: keyof PageCost, q: number) =>
    quantileOf(
      costs.map((cost) => cost[column]),
      q,
    );
  const tuple = { figure: 'feed', case: name, beside: 'the same by a comparison of tuples' };
  const full = pages.filter(({ rows }) => rows > 0).length;
  return [
    toRow({
      ...tuple,
      unit: 'p99 ms of a page',
      ours: ofMs(pages, 0.99),
      theirs: plain.tuple.ms,
      bars: [PAGE_MS],
      also: `p50 ${ofMs(pages, 0.5).toFixed(1)} of ${pages.length} pages, ${full} with rows; by OFFSET ${Math.round(plain.offset.ms)} ms; engine CPU p50 ${of('cpuMs', 0.5).toFixed(1)} ms`,
    }),
    toRow({
      ...tuple,
      unit: 'rows read for a page, most',
      ours: of('readRows', 1),
      theirs: plain.tuple.readRows,
      bars: [READ_ROWS],
      also: `p50 ${of('readRows', 0.5)}; by OFFSET ${plain.offset.readRows}; questions p50 ${of('questions', 0.5)}, most ${of('questions', 1)}`,
    }),
    toRow({
      figure: 'feed',
      case: `${name}, ${STREAM_PER_SECOND} a second come in`,
      unit: 'p99 ms of a page',
      ours: ofMs(busy, 0.99),
      beside: 'the same, idle',
      theirs: ofMs(pages, 0.99),
      also: `p50 ${ofMs(busy, 0.5).toFixed(1)} and ${ofMs(pages, 0.5).toFixed(1)}; ${busy.length} pages`,
    }),
  ];
}

function toCpuRows({ cpu, bare, proxy }: Readonly<Record<'cpu' | 'bare' | 'proxy', PageCpu>>): Row[] {
  const toAlso = ({ engineMs, pagesPerSecond }: PageCpu) =>
    `engine ${engineMs.toFixed(1)} CPU-ms a page; ${Math.round(pagesPerSecond)} pages a second by the clock`;
  const ours = { figure: 'feed', unit: 'pages per CPU-second', ours: cpu.pagesPerCpuSecond };
  return [
    toRow({
      ...ours,
      case: 'pages of 100 of everything',
      bars: [CPU_RATE],
      also: toAlso(cpu),
      beside: 'floor: a bare server of the same bytes',
      theirs: bare.pagesPerCpuSecond,
    }),
    toRow({
      ...ours,
      case: 'the same, beside who asks the engine too',
      also: `the proxy: ${toAlso(proxy)}`,
      beside: 'floor: a bare proxy of the engine',
      theirs: proxy.pagesPerCpuSecond,
    }),
  ];
}
