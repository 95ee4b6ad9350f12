import { readFileSync } from 'node:fs';
import { cpus, release, totalmem, type } from 'node:os';
import { command, numberFrom, UsageError, wholeNumberFrom } from '../../services/operator/src/command.ts';
import { runMeasure, writeResults } from '../measure.ts';
import { type Bench, compareRows, type Figure, type FigureRow, parseBaseline, toTable, toWarnings } from './figure.ts';
import { chain } from './figures/chain.ts';
import { cluster } from './figures/cluster.ts';
import { drain } from './figures/drain.ts';
import { endToEnd } from './figures/end-to-end.ts';
import { erasure } from './figures/erasure.ts';
import { feed } from './figures/feed.ts';
import { gateway, gatewayLatency } from './figures/gateway.ts';
import { linker } from './figures/linker.ts';
import { live, overview, portal } from './figures/portal.ts';
import { queries } from './figures/queries.ts';
import { refusals } from './figures/refusals.ts';
import { replicate } from './figures/replicate.ts';
import { soak } from './figures/soak.ts';
import { idle, start } from './figures/stack.ts';
import { insertSync, storedOffsets } from './figures/tables.ts';
import { tracing } from './figures/tracing.ts';
import { visible } from './figures/visible.ts';
import { writer } from './figures/writer.ts';
import { openBench } from './open-bench.ts';
import { closeOpened } from './opened.ts';
import { type BenchStores, openStores } from './stores.ts';

const FIGURES: readonly Figure[] = [
  ...[gateway, gatewayLatency, refusals, writer, endToEnd, visible, linker],
  ...[
    start,
    idle,
    storedOffsets,
    insertSync,
    erasure,
    feed,
    replicate,
    queries,
    overview,
    portal,
    live,
    chain,
    tracing,
  ],
  ...[drain, soak, cluster],
];
const BASELINE = new URL('./baseline.json', import.meta.url);
const [ROWS_MIN, ROWS_MAX] = [10_000, 10_000_000_000];

function describeMachine(): Record<string, string | number> {
  return {
    system: `${type()} ${release()}`,
    processor: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    memoryGib: Math.round(totalmem() / 1024 ** 3),
    node: process.version,
  };
}

type Size = Pick<Bench, 'scale' | 'rows'>;

async function measure(figure: Figure, stores: BenchStores, size: Size): Promise<FigureRow[]> {
  const { bench, close } = await openBench(stores, size);
  try {
    return (await figure.measure(bench)).map((row) => ({ figure: figure.name, ...row }));
  } finally {
    await close();
  }
}

/** Measures the named figures in sequence. If one figure fails, the remaining figures are still measured. */
async function run(names: readonly string[], { tls, ...size }: Size & { tls: boolean }): Promise<void> {
  const unknown = names.filter((name) => !FIGURES.some((figure) => figure.name === name));
  if (unknown.length > 0) throw new UsageError(`Unknown figure: ${unknown.join(', ')}. See --help.`);
  const rows: FigureRow[] = [];
  const stores = await openStores(tls);
  // Child processes must not outlive this process.
  const close = () => closeOpened().finally(stores.close);
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void close().finally(() => process.exit(1)));
  try {
    const isChosen = ({ name, optional }: Figure) => (names.length === 0 ? !optional : names.includes(name));
    for (const figure of FIGURES.filter(isChosen)) {
      console.error(`measuring ${figure.name} …`);
      try {
        rows.push(...(await measure(figure, stores, size)));
      } catch (error) {
        console.error(`${figure.name}: ${error instanceof Error ? error.message : error}`);
        process.exitCode = 1;
      }
    }
  } finally {
    await stores.close();
  }
  report(rows);
}

function report(rows: readonly FigureRow[]): void {
  const compared = compareRows(rows, parseBaseline(readFileSync(BASELINE, 'utf8')));
  console.log(toTable(compared));
  for (const warning of toWarnings(compared)) console.error(warning);
  writeResults(import.meta.url, { machine: describeMachine(), rows: compared });
}

const bench = command('bench', 'measure the services and their peers or floors in the same run')
  .argument('[figures...]', 'figures to measure; default: all non-optional figures')
  .option('--tls', 'use TLS and logins between services and stores (not for floors and peers)', false)
  .option(
    '--scale <fraction>',
    'fraction of rows and requests to use in erasure, feed, replicate, queries, portal, live, chain, drain, soak and cluster',
    numberFrom(0.001, 1),
    1,
  )
  .option(
    '--rows <number>',
    'number of events in the figures queries and portal (default 20 million), and cluster (default 5 million)',
    wholeNumberFrom(ROWS_MIN, ROWS_MAX),
  )
  .addHelpText(
    'after',
    `\nFigures: ${FIGURES.map(({ name, optional }) => name + (optional ? ' (optional)' : '')).join(', ')}`,
  )
  .action(run);

await runMeasure(bench);
