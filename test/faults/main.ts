import { mkdirSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { SCENARIOS } from './scenarios/index.ts';
import { addFailure, createRow, type Row, toTable } from './world/report.ts';
import { runTrial, type Scenario } from './world/trial.ts';
import { verify } from './world/verify.ts';
import { openWorld, type World } from './world/world.ts';
import { openWriterTrials, WRITER_FAULTS } from './writer-faults.ts';

const HELP = `usage: npm run faults -- [options]

Tries every fault of the list with many seeds, on stores and processes of its own.

  --seeds 20        seeds for each fault
  --first-seed 1    the first of them; FAULT_SEED=n is short for --first-seed n --seeds 1
  --fault 1         only this fault, by its number
  --minutes 60      begins no further seed after this time
  --away-minutes .1 how long ClickHouse stays away in fault 5; 5 for the long run
  --without-intents kills writers that name no block (fault 3): a control, which must fail`;

const KNOWN_FAULTS = new Set([...SCENARIOS.map(({ fault }) => fault), ...WRITER_FAULTS]);
const RESULTS = new URL('./results/', import.meta.url);

interface Options {
  seeds: number;
  firstSeed: number;
  fault: number | null;
  minutes: number;
  awayMs: number;
  withoutIntents: boolean;
}

function parseOptions(args: string[]): Options {
  const { values } = parseArgs({
    args,
    options: {
      seeds: { type: 'string', default: '20' },
      'first-seed': { type: 'string', default: '1' },
      fault: { type: 'string' },
      minutes: { type: 'string', default: '60' },
      'away-minutes': { type: 'string', default: '0.1' },
      'without-intents': { type: 'boolean', default: false },
    },
  });
  const given = process.env.FAULT_SEED;
  const options = {
    seeds: given === undefined ? Number(values.seeds) : 1,
    firstSeed: Number(given ?? values['first-seed']),
    fault: values.fault === undefined ? null : Number(values.fault),
    minutes: Number(values.minutes),
    awayMs: Number(values['away-minutes']) * 60_000,
    withoutIntents: values['without-intents'],
  };
  const isSound = options.seeds >= 1 && Number.isSafeInteger(options.firstSeed) && options.minutes > 0;
  if (!isSound || (options.fault !== null && !KNOWN_FAULTS.has(options.fault))) throw new Error(HELP);
  return options;
}

/** One seed. A failed one leaves the deployment in doubt, so the next begins with a new one. */
async function trySeed(world: World, { scenario, seed, row }: { scenario: Scenario; seed: number; row: Row }) {
  try {
    const { sent, acknowledged, published, rows } = await runTrial(world, scenario, seed);
    await verify(world);
    row.seeds += 1;
    row.sent += sent;
    row.acknowledged += acknowledged;
    row.published += published;
    row.rows += rows;
  } catch (error) {
    addFailure(row, seed, error);
    console.error(error instanceof Error ? error.message : error);
    await world.renew();
  }
}

/** Round by round, so that a run that is cut short has tried every fault. */
async function run({ seeds, firstSeed, fault, minutes, ...options }: Options): Promise<Row[]> {
  const end = Date.now() + minutes * 60_000;
  const chosen = SCENARIOS.filter((scenario) => fault === null || scenario.fault === fault);
  const rows = chosen.map(createRow);
  const world = await openWorld((line) => console.error(line));
  // Ended from outside: the stores are processes of this one and must not outlive it.
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void world.close().finally(() => process.exit(1)));
  const writers = openWriterTrials(world.stack.file, { fault, ...options });
  rows.push(...writers.rows);
  try {
    for (let seed = firstSeed; seed < firstSeed + seeds; seed++) {
      for (const [index, scenario] of chosen.entries()) {
        if (Date.now() > end) return rows;
        console.error(
          `${new Date().toISOString().slice(11, 19)} fault ${scenario.fault}, seed ${seed}: ${scenario.tried}`,
        );
        await trySeed(world, { scenario, seed, row: rows[index]! });
      }
      if (Date.now() < end) await writers.trySeed(seed, (line) => console.error(line));
    }
  } finally {
    await writers.close();
    await world.close();
  }
  return rows;
}

try {
  const rows = await run(parseOptions(process.argv.slice(2)));
  console.log(toTable(rows));
  mkdirSync(RESULTS, { recursive: true });
  writeFileSync(
    new URL('latest.json', RESULTS),
    `${JSON.stringify({ takenAt: new Date().toISOString(), rows }, null, 2)}\n`,
  );
  if (rows.some(({ failures }) => failures.length > 0)) process.exitCode = 1;
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
