import { setTimeout as pause } from 'node:timers/promises';
import { command, EXIT, endWith, numberFrom, UsageError } from '../../services/operator/src/command.ts';
import { runMeasure } from '../measure.ts';
import { ATTACKS, untilReady } from './attacks.ts';
import type { Results } from './bystander.ts';
import { startAttackWorld } from './world.ts';

const errorsIn = ({ errors }: Results) => Object.values(errors).reduce((sum, count) => sum + count, 0);
const toText = (results: Results) =>
  `${results.requests} requests, ${errorsIn(results)} failed, p50 ${results.p50Ms.toFixed(1)} ms, p99 ${results.p99Ms.toFixed(1)} ms`;

async function runAttacks(attacks: typeof ATTACKS, seconds: number): Promise<boolean> {
  const world = await startAttackWorld();
  // The stack is a child of this process and must not outlive it.
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void world.close().finally(() => process.exit(1)));
  let hasPassed = true;
  try {
    for (const { name, run } of attacks) {
      await untilReady(world);
      await world.takeResults();
      await pause(5000);
      const before = await world.takeResults();
      const pids = JSON.stringify(world.stack.file.processes);
      const outcome = await run(world, seconds).catch((error: Error) => {
        hasPassed = false;
        return `FAILED: ${error.message}`;
      });
      const during = await world.takeResults();
      await untilReady(world);
      await pause(5000);
      const after = await world.takeResults();
      console.log(`\n${name}\n  ${outcome}`);
      for (const [when, results] of Object.entries({ before, during, after }))
        console.log(`  ${when.padEnd(6)} ${toText(results)}`, ...(errorsIn(results) === 0 ? [] : [results.errors]));
      if (errorsIn(during) + errorsIn(after) > 0) hasPassed = false;
      if (JSON.stringify(world.stack.file.processes) !== pids) {
        console.log('  FAILED: a process exited and was restarted');
        hasPassed = false;
      }
    }
  } finally {
    await world.close();
  }
  return hasPassed;
}

const attack = command(
  'attacks',
  'attack a whole stack as one tenant, while another tenant posts events, reads history and opens the portal',
)
  .option('--only <text>', 'run only attacks whose name contains this text', '')
  .option('--seconds <number>', 'duration of each attack', numberFrom(3, 600), 20)
  .addHelpText(
    'after',
    `
Prints the other tenant's results before, during and after each attack. Exits with 1 if one of that tenant's
requests fails, a process exits, or an attack succeeds.`,
  )
  .action(async ({ only, seconds }) => {
    const attacks = ATTACKS.filter(({ name }) => name.includes(only));
    if (attacks.length === 0) throw new UsageError(`no attack name contains ${only}`);
    endWith((await runAttacks(attacks, seconds)) ? EXIT.ok : EXIT.failed);
  });

await runMeasure(attack);
