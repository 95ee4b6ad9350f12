import { TOPICS } from '@playline/contracts';
import { createRandom, type Random } from '../../../services/operator/src/simulate/random.ts';
import { ask } from './clickhouse.ts';
import { checkEnd, endsOf } from './end-check.ts';
import { createLedger, type Ledger } from './ledger.ts';
import type { Reached } from './reached.ts';
import type { SeedEnd } from './report.ts';
import type { ServiceName, ServiceProcess } from './service-process.ts';
import { openTraffic, type Traffic, type TrafficOptions } from './traffic.ts';
import type { Crew, World } from './world.ts';

/** One run of one scenario with one seed. */
export interface Trial {
  readonly world: World;
  readonly seed: number;
  /** Draws the moments of the cuts. The traffic has generators of its own, made of the same seed. */
  readonly random: Random;
  readonly ledger: Ledger;
  readonly environmentId: string;
  /** Publishable key of the environment. */
  readonly key: string;
  /** The crew as it was when the trial began. */
  readonly crew: readonly ServiceProcess[];
  /** Starts a separate process, waits until it is ready, and ends it with the trial. */
  start(service: ServiceName, settings?: Record<string, string>): Promise<ServiceProcess>;
  /** The same without waiting for it to be ready. */
  launch(service: ServiceName, settings?: Record<string, string>): Promise<ServiceProcess>;
  /** Traffic to these gateways, of the trial's seed; a second one of a trial sends other messages. */
  openTraffic(gateways: readonly ServiceProcess[], options?: Partial<TrafficOptions>): Traffic;
}

/** A fault that must be survived. */
export interface Scenario {
  /** Number in the list of faults. */
  readonly fault: number;
  /** The guarantee, as a sentence. */
  readonly title: string;
  /** What is done, in a few words for the table. */
  readonly tried: string;
  /** Brokers of the world that it needs; one unless it says otherwise. */
  readonly brokers?: number;
  /** Processes of the consuming services beside it; one each unless it says otherwise. */
  readonly crew?: Crew;
  /** Rows of a log that is gone stay at offsets of the one that is there: they cannot be counted against it. */
  readonly replacesLog?: true;
  /**
   * Does it. Mends what it cut, ends its traffic, and leaves the end check to the caller.
   * @returns what it came to: a count of 0 says that the fault did not strike
   */
  run(trial: Trial): Promise<Reached>;
}

const CREW: Crew = { linkers: 1, writers: 1 };
/** Keeps the messages of several traffics of one trial apart from those of the next seeds. */
const SEED_STEP = 1_000_003;
let trials = 0;

/**
 * Runs a scenario with a seed and checks the end state.
 * @throws Error naming the seed; the world's deployment is then in doubt, see `World.renew`
 */
export async function runTrial(world: World, scenario: Scenario, seed: number): Promise<SeedEnd> {
  const opened: Opened = { processes: [], traffics: [] };
  try {
    const trial = await openTrial(world, { scenario, seed, opened });
    const from = await endsOf(world, TOPICS.messages.name);
    // Merges fold copies; without them the raw rows can be counted against the log.
    await ask(world.deployment.engine, 'SYSTEM STOP MERGES events');
    const reached = await scenario.run(trial);
    await world.wires.mend();
    await world.setCrew(CREW);
    const end = await checkEnd(world, { ledger: trial.ledger, environmentId: trial.environmentId, from, scenario });
    await ask(world.deployment.engine, 'SYSTEM START MERGES events');
    return { ...end, reached };
  } catch (error) {
    const words = error instanceof Error ? (error.stack ?? error.message) : String(error);
    throw new Error(`fault ${scenario.fault}, FAULT_SEED=${seed} (${scenario.tried}): ${words}`, { cause: error });
  } finally {
    for (const traffic of opened.traffics) traffic.abort();
    await world.wires.mend();
    await Promise.all(opened.processes.map((child) => child.close()));
  }
}

/** What a trial has begun and must not outlive it. */
interface Opened {
  readonly processes: ServiceProcess[];
  readonly traffics: Traffic[];
}

async function openTrial(
  world: World,
  { scenario, seed, opened }: { scenario: Scenario; seed: number; opened: Opened },
): Promise<Trial> {
  const crew = await world.setCrew(scenario.crew ?? CREW);
  const environmentId = `test-faults-${++trials}`;
  const key = await world.deployment.addEnvironment(environmentId);
  const ledger = createLedger();
  const launch = async (service: ServiceName, settings?: Record<string, string>) => {
    const child = await world.start(service, settings);
    opened.processes.push(child);
    return child;
  };
  return {
    world,
    seed,
    random: createRandom(seed),
    ledger,
    environmentId,
    key,
    crew,
    launch,
    start: async (service, settings) => {
      const child = await launch(service, settings);
      await child.whenReady();
      return child;
    },
    openTraffic: (gateways, options = {}) => {
      const traffic = openTraffic({
        seed: seed + SEED_STEP * opened.traffics.length,
        ledger,
        key,
        gateways,
        ...options,
      });
      opened.traffics.push(traffic);
      return traffic;
    },
  };
}
