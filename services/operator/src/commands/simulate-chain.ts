import { randomInt } from 'node:crypto';
import { isChainName } from '@playline/contracts';
import type { Addresses } from '../addresses.ts';
import { findChainUrl } from '../chain-url.ts';
import { EXIT, type ExitCode, isMeant, numberOf, type Terminal, textOf, UsageError, type Values } from '../command.ts';
import { type ImportSources, openImportWay } from '../import/import-way.ts';
import { ACTIVITIES, TOKENS } from '../import/subjects.ts';
import { createProgress } from '../progress.ts';
import { isClean } from '../simulate/differences.ts';
import { toJson, toLines } from '../simulate-chain/report.ts';
import { type ChainSimulationOptions, simulateChain } from '../simulate-chain/simulation.ts';

export interface SimulateChainContext {
  readonly sources: ImportSources;
  readonly chainApi: Addresses['chainApi'];
  /** Aborted when the user interrupts the command: what was sent is still reconciled. */
  readonly stop: AbortSignal;
}

type Job = Omit<ChainSimulationOptions, 'activities' | 'tokens' | 'stop' | 'onProgress'>;

/** A mistyped number cannot run for a day: some minutes of calls, and data that fits a laptop. */
const BOUNDS = { activities: 200_000, rate: 100_000 };

/** Plays the history of a chain, and reports the result. */
export async function runChainSimulation(
  values: Values,
  { sources, chainApi, stop }: SimulateChainContext,
  terminal: Terminal,
): Promise<ExitCode> {
  const job = toJob(values, chainApi);
  if (!(await consents(job, { values, terminal, isOfStack: chainApi() !== null }))) return EXIT.failed;
  const way = { ...sources, writerGroup: 'activity-writer', onProgress: terminal.progress };
  const activities = await openImportWay(ACTIVITIES, way);
  try {
    const tokens = await openImportWay(TOKENS, way);
    try {
      const result = await simulateChain({ ...job, activities, tokens, stop, onProgress: createProgress(terminal) });
      if (values.json === true) terminal.result(JSON.stringify(toJson(result)));
      else for (const line of toLines(result)) terminal.result(line);
      return isClean(result) ? EXIT.ok : EXIT.failed;
    } finally {
      await tokens.close();
    }
  } finally {
    await activities.close();
  }
}

/** Asks before it writes to a chain of another deployment: activities cannot be removed from a history. */
async function consents(
  { chain }: Job,
  { values, terminal, isOfStack }: { values: Values; terminal: Terminal; isOfStack: boolean },
): Promise<boolean> {
  if (isOfStack) return true;
  const what = `This publishes made-up activities into the history of ${chain.name}, where they stay for ever.`;
  const isAllowed = await isMeant(what, values, terminal);
  if (!isAllowed) terminal.progress('nothing was published');
  return isAllowed;
}

/** @throws UsageError for arguments that contradict each other, before anything is opened */
function toJob(values: Values, chainApi: Addresses['chainApi']): Job {
  return {
    seed: numberOf(values, 'seed', { min: 0, max: 2 ** 31 - 1, fallback: randomInt(2 ** 31) }),
    activitiesMax: numberOf(values, 'activities', { min: 1, max: BOUNDS.activities, fallback: 10_000 }),
    rate: numberOf(values, 'rate', { min: 0, max: BOUNDS.rate, fallback: 500 }),
    brokenShare: numberOf(values, 'broken', { min: 0, max: 0.9, fallback: 0.03 }),
    settleIdleMaxMs: 1000 * numberOf(values, 'settle-seconds', { min: 1, max: 3600, fallback: 60 }),
    // Last, so that errors in other options are reported before a stack that does not run.
    ...toChain(values, chainApi),
  };
}

function toChain(values: Values, chainApi: Addresses['chainApi']): Pick<Job, 'url' | 'chain'> {
  const chains = chainApi()?.chains ?? [];
  const names = chains.map(({ name }) => name);
  const name = textOf(values, 'chain') ?? (names.length === 1 ? names[0] : undefined);
  if (name === undefined)
    throw new UsageError(
      `--chain: which one? ${names.length === 0 ? 'Nobody tells what is served' : names.join(', ')}`,
    );
  if (!isChainName(name)) throw new UsageError('--chain: expected the name of a chain');
  const given = textOf(values, 'url');
  const url = findChainUrl(given, name, chainApi);
  // The id of a chain is known only for the stack's interface.
  const id = given === undefined ? (chains.find((chain) => chain.name === name)?.id ?? null) : null;
  return { url, chain: { name, id } };
}
