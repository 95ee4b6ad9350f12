import {
  command,
  EXIT,
  endWith,
  numberFrom,
  UsageError,
  wholeNumberFrom,
} from '../../services/operator/src/command.ts';
import { runMeasure, writeResults } from '../measure.ts';
import { FAULTS, type Fault, openTrials } from './trials.ts';
import { hasFailed, type Row, toTable, toWarning } from './world/report.ts';
import type { WriterFaultOptions } from './writer-faults.ts';

const SEED_MAX = 2 ** 31;

interface Options extends WriterFaultOptions {
  firstSeed: number;
  isChosen: (fault: Fault) => boolean;
  minutes: number;
}

type Given = Omit<Options, 'isChosen' | 'awayMs'> & { fault?: number | undefined; tried: string; awayMinutes: number };

function toOptions({ fault: wanted, tried: text, awayMinutes, ...given }: Given): Options {
  const isChosen = ({ fault, tried }: Fault) => (wanted === undefined || fault === wanted) && tried.includes(text);
  if (!FAULTS.some(isChosen)) throw new UsageError('--fault and --tried: no fault of the list is chosen by them');
  const seed = process.env.FAULT_SEED;
  if (seed !== undefined && !/^\d{1,9}$/.test(seed)) throw new UsageError('FAULT_SEED: expected a whole number');
  const only = seed === undefined ? {} : { firstSeed: Number(seed), seeds: 1 };
  return { ...given, ...only, isChosen, awayMs: awayMinutes * 60_000 };
}

const report = (line: string) => console.error(`${new Date().toISOString().slice(11, 19)} ${line}`);

/** Runs one seed of every fault, then the next seed, so that a run that is cut short has tried all faults. */
async function run({ firstSeed, minutes, ...options }: Options): Promise<Row[]> {
  const { trials, start, close } = openTrials({ ...options, world: { report: (line) => console.error(line) } });
  // On a signal: the stores are children of this process and must not outlive it.
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void close().finally(() => process.exit(1)));
  const rows = trials.map(({ row }) => row);
  try {
    await start();
    // The time counts from when the stores run, because they may have to be installed first.
    const end = Date.now() + minutes * 60_000;
    for (let seed = firstSeed; seed < firstSeed + options.seeds; seed++) {
      for (const { row, trySeed } of trials) {
        if (Date.now() > end) return rows;
        report(`fault ${row.fault}, seed ${seed}: ${row.tried}`);
        report(await trySeed(seed));
      }
    }
  } finally {
    await close();
  }
  return rows;
}

async function tryFaults(options: Options): Promise<void> {
  const rows = await run(options);
  const warning = toWarning(rows, options.minutes);
  console.log(toTable(rows));
  for (const { fault, tried, notReached } of rows)
    for (const { seed, text } of notReached)
      console.log(`fault ${fault} (${tried}) did not take effect in seed ${seed}: ${text}`);
  if (warning !== null) console.log(warning);
  writeResults(import.meta.url, { warning, rows });
  endWith(rows.some(hasFailed) ? EXIT.failed : EXIT.ok);
}

const faults = command('faults', 'try every fault of the list with many seeds, on stores and processes of its own')
  .option('--seeds <number>', 'seeds for each fault', wholeNumberFrom(1, SEED_MAX), 20)
  .option('--first-seed <number>', 'the first of them', wholeNumberFrom(0, SEED_MAX), 1)
  .option('--fault <number>', 'only this fault', wholeNumberFrom(1, 1_000))
  .option('--tried <text>', 'only what has this text in its line of the table', '')
  .option('--minutes <number>', 'begins no further seed after this time', numberFrom(0.01, SEED_MAX), 60)
  .option('--away-minutes <number>', 'how long ClickHouse is away in fault 5', numberFrom(0, SEED_MAX), 0.1)
  .option('--without-intents', 'kill writers that name no block (fault 3): a control, which must fail', false)
  .addHelpText(
    'after',
    `
FAULT_SEED=n is short for --first-seed n --seeds 1. Ends with 1 when a seed failed, or when a fault took effect in none of
its seeds.`,
  )
  .action((options) => tryFaults(toOptions(options)));

await runMeasure(faults);
