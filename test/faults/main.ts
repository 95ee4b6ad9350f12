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

type Args = Omit<Options, 'isChosen' | 'outageMs'> & { fault?: number | undefined; tried: string; awayMinutes: number };

function toOptions({ fault: number, tried: text, awayMinutes, ...flags }: Args): Options {
  const isChosen = ({ fault, tried }: Fault) => (number === undefined || fault === number) && tried.includes(text);
  if (!FAULTS.some(isChosen)) throw new UsageError('No fault matches --fault and --tried. See test/faults/README.md.');
  const seed = process.env.FAULT_SEED;
  if (seed !== undefined && !/^\d{1,9}$/.test(seed)) throw new UsageError('FAULT_SEED is not a whole number.');
  const seedOverride = seed === undefined ? {} : { firstSeed: Number(seed), seeds: 1 };
  return { ...flags, ...seedOverride, isChosen, outageMs: awayMinutes * 60_000 };
}

const report = (line: string) => console.error(`${new Date().toISOString().slice(11, 19)} ${line}`);

// Tries all faults with one seed before the next seed, so that a run that times out has tried every fault.
async function run({ firstSeed, minutes, ...options }: Options): Promise<Row[]> {
  const { trials, start, close } = openTrials({ ...options, world: { report: (line) => console.error(line) } });
  let isInterrupted = false;
  // The stores are child processes and must not outlive this process.
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => {
      isInterrupted = true;
      void close().finally(() => process.exit(1));
    });
  const rows = trials.map(({ row }) => row);
  try {
    await start();
    // Starting the stores may include installing them, which must not count towards the time limit.
    const end = Date.now() + minutes * 60_000;
    for (let seed = firstSeed; seed < firstSeed + options.seeds; seed++) {
      for (const { row, trySeed } of trials) {
        if (isInterrupted || Date.now() > end) return rows;
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
  for (const { fault, tried, withoutEffect } of rows)
    for (const { seed, text } of withoutEffect)
      console.log(`fault ${fault} (${tried}) did not take effect with seed ${seed}: ${text}`);
  if (warning !== null) console.log(warning);
  writeResults(import.meta.url, { warning, rows });
  endWith(rows.some(hasFailed) ? EXIT.failed : EXIT.ok);
}

const faults = command('faults', 'inject every fault with many seeds, into separate stores and processes')
  .option('--seeds <number>', 'seeds per fault', wholeNumberFrom(1, SEED_MAX), 20)
  .option('--first-seed <number>', 'the first seed', wholeNumberFrom(0, SEED_MAX), 1)
  .option('--fault <number>', 'try only this fault', wholeNumberFrom(1, 1_000))
  .option('--tried <text>', 'try only faults whose description contains this text', '')
  .option('--minutes <number>', 'start no new seeds after this many minutes', numberFrom(0.01, SEED_MAX), 60)
  .option('--away-minutes <number>', 'minutes of ClickHouse downtime in fault 5', numberFrom(0, SEED_MAX), 0.1)
  .option('--without-intents', 'control run of fault 3, which must fail: the writers commit no intents', false)
  .addHelpText(
    'after',
    `
FAULT_SEED=n is short for --first-seed n --seeds 1. Exits with 1 if a seed failed or a fault never took effect.`,
  )
  .action((options) => tryFaults(toOptions(options)));

await runMeasure(faults);
