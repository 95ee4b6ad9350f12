import { randomInt } from 'node:crypto';
import { createRandom } from '@playline/testkit/random';
import { command, EXIT, endWith, numberFrom, wholeNumberFrom } from '../../services/operator/src/command.ts';
import { withOpened } from '../bench/opened.ts';
import { openStores } from '../bench/stores.ts';
import { startGateway } from '../conformance/gateway.ts';
import { runMeasure } from '../measure.ts';
import { RATIO_MAX, searchCosts } from './cost/search.ts';
import { FUZZ_SETTINGS, runFuzz } from './run.ts';
import { installSchemathesis, runSchemathesis } from './schemathesis.ts';

const SEED_MAX = 2 ** 31;

/** Divides the time among three steps. The last two steps share a gateway. */
async function fuzz(minutes: number, seed: number): Promise<boolean> {
  const missing = await installSchemathesis();
  const seconds = Math.max(1, Math.round((minutes * 60) / (missing === null ? 3 : 2)));
  const isCheap = await findMostExpensive(seconds, seed);
  return withOpened(async (keep) => {
    const stores = keep(await openStores());
    // The stores are children of this process and must not outlive it.
    for (const signal of ['SIGINT', 'SIGTERM'] as const)
      process.once(signal, () => void stores.close().finally(() => process.exit(1)));
    const gateway = keep(await startGateway(FUZZ_SETTINGS, { ...stores, redis: { url: stores.redis } }));
    console.error(`posting generated batches for ${seconds} s, seed ${seed}`);
    const report = await runFuzz({ gateway, brokers: stores.kafka, seed, limit: { seconds } });
    console.log(JSON.stringify(report, null, 2));
    const { problems, missing: lost, repeated, unwanted } = report;
    const isCorrect = problems.length + lost.length + repeated.length + unwanted.length === 0;
    if (missing !== null) console.error(`Schemathesis was skipped: ${missing}`);
    return (missing !== null || (await runSchemathesis(gateway, seconds, seed)) === 0) && isCorrect && isCheap;
  });
}

/** Searches for the most expensive body. @returns false if a body costs too much or is charged too little */
async function findMostExpensive(seconds: number, seed: number): Promise<boolean> {
  console.error(`searching for the most expensive body for ${seconds} s, seed ${seed}`);
  const endAt = performance.now() + seconds * 1000;
  const result = await searchCosts(createRandom(seed), () => performance.now() < endAt);
  const worst = result.mostExpensive[0]?.ratio ?? Number.NaN;
  console.log(JSON.stringify(result, null, 2));
  console.error(
    `the most expensive of ${result.bodies} bodies costs ${worst} times a typical body (limit: ${RATIO_MAX})`,
  );
  return worst <= RATIO_MAX && result.undercharged.length === 0;
}

const run = command('fuzz', 'post generated batches, check every response, and search for the most expensive body')
  .option('--minutes <number>', 'duration', numberFrom(0.01, 24 * 60), 2)
  .option('--seed <number>', 'repeat the bodies of an earlier run', wholeNumberFrom(0, SEED_MAX))
  .addHelpText('after', '\nExits with 1 if a problem was found.')
  .action(async ({ minutes, seed = randomInt(SEED_MAX) }) =>
    endWith((await fuzz(minutes, seed)) ? EXIT.ok : EXIT.failed),
  );

await runMeasure(run);
