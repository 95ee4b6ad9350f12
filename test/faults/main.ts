import { mkdirSync, writeFileSync } from 'node:fs';
import {
  command,
  EXIT,
  endWith,
  numberFrom,
  UsageError,
  wholeNumberFrom,
} from '../../services/operator/src/command.ts';
import { runMeasure } from '../measure.ts';
import { createMintTrials, MINT_FAULTS } from './mint-faults.ts';
import { SCENARIOS } from './scenarios/index.ts';
import { verify } from './world/operate.ts';
import { createRow, type FaultTrial, hasFailed, type Row, toTable, toWarning, tryAlone } from './world/report.ts';
import { runTrial, type Scenario } from './world/trial.ts';
import { openWorld, type World } from './world/world.ts';
import { createWriterTrials, WRITER_FAULTS, type WriterFaultOptions } from './writer-faults.ts';

const SEED_MAX = 2 ** 31;
const RESULTS = new URL('./results/', import.meta.url);

interface Options extends WriterFaultOptions {
  firstSeed: number;
  isChosen: (row: Pick<Row, 'fault' | 'tried'>) => boolean;
  minutes: number;
}

type Given = Omit<Options, 'isChosen' | 'awayMs'> & { fault?: number | undefined; tried: string; awayMinutes: number };

function toOptions({ fault: wanted, tried: text, awayMinutes, ...given }: Given): Options {
  const isChosen = ({ fault, tried }: Pick<Row, 'fault' | 'tried'>) =>
    (wanted === undefined || fault === wanted) && tried.includes(text);
  if (![...SCENARIOS, ...WRITER_FAULTS, ...MINT_FAULTS].some(isChosen))
    throw new UsageError('--fault and --tried: no fault of the list is chosen by them');
  const seed = process.env.FAULT_SEED;
  if (seed !== undefined && !/^\d{1,9}$/.test(seed)) throw new UsageError('FAULT_SEED: expected a whole number');
  const only = seed === undefined ? {} : { firstSeed: Number(seed), seeds: 1 };
  return { ...given, ...only, isChosen, awayMs: awayMinutes * 60_000 };
}

type Worlds = ReturnType<typeof openWorlds>;

/** The worlds of a run, by number of brokers. Each starts for the first scenario that needs it. */
function openWorlds() {
  const opened = new Map<number, Promise<World>>();
  return {
    of: ({ brokers = 1 }: Pick<Scenario, 'brokers'>) => {
      const world = opened.get(brokers) ?? openWorld({ brokers, report: (line) => console.error(line) });
      opened.set(brokers, world);
      return world;
    },
    close: async () =>
      void (await Promise.allSettled([...opened.values()].map(async (world) => (await world).close()))),
  };
}

/** Tries a scenario seed by seed. A failed seed may damage the deployment, so the next one gets a new deployment. */
function createTrial(worlds: Worlds, scenario: Scenario, seeds: number): Omit<FaultTrial, 'close'> {
  const row = createRow(scenario, seeds);
  const run = async (world: World, seed: number) => {
    let isDamaged = true;
    try {
      const end = await runTrial(world, scenario, seed);
      await verify(world);
      isDamaged = scenario.replacesLog === true;
      return end;
    } finally {
      if (isDamaged) await world.renew();
    }
  };
  const trySeed = async (seed: number) => {
    const world = await worlds.of(scenario);
    return await tryAlone(row, seed, () => run(world, seed));
  };
  return { row, trySeed };
}

const report = (line: string) => console.error(`${new Date().toISOString().slice(11, 19)} ${line}`);

/** Runs one seed of every fault, then the next seed, so that a run that is cut short has tried all faults. */
async function run({ seeds, firstSeed, isChosen, minutes, ...options }: Options): Promise<Row[]> {
  const worlds = openWorlds();
  // On a signal: the stores are children of this process and must not outlive it.
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void worlds.close().finally(() => process.exit(1)));
  const scenarios = SCENARIOS.filter(isChosen);
  // Faults of the writer and of the minter use the stores of the world with one broker.
  const stores = async () => (await worlds.of({})).stack.file;
  const minters = createMintTrials(stores, { isChosen, seeds });
  const alone = WRITER_FAULTS.some(isChosen)
    ? [...createWriterTrials(await stores(), { isChosen, seeds, ...options }), ...minters]
    : minters;
  const [first] = scenarios;
  if (alone.length === minters.length && first !== undefined) await worlds.of(first);
  const trials = [...scenarios.map((scenario) => createTrial(worlds, scenario, seeds)), ...alone];
  trials.sort((one, other) => one.row.fault - other.row.fault);
  const rows = trials.map(({ row }) => row);
  // The time counts from when the stores run, because they may have to be installed first.
  const end = Date.now() + minutes * 60_000;
  try {
    for (let seed = firstSeed; seed < firstSeed + seeds; seed++) {
      for (const { row, trySeed } of trials) {
        if (Date.now() > end) return rows;
        report(`fault ${row.fault}, seed ${seed}: ${row.tried}`);
        report(await trySeed(seed));
      }
    }
  } finally {
    await Promise.all(alone.map((trial) => trial.close()));
    await worlds.close();
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
  mkdirSync(RESULTS, { recursive: true });
  const results = JSON.stringify({ takenAt: new Date().toISOString(), warning, rows }, null, 2);
  writeFileSync(new URL('latest.json', RESULTS), `${results}\n`);
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
