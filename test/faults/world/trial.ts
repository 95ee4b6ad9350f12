import { TOPICS } from '@playline/contracts';
import { createRandom } from '@playline/testkit/random';
import { query } from './clickhouse.ts';
import { checkEnd, endsOf } from './end-check.ts';
import { createLedger } from './ledger.ts';
import type { Reached } from './reached.ts';
import type { SeedEnd } from './report.ts';
import type { ServiceName, ServiceProcess } from './service-process.ts';
import { Traffic, type TrafficOptions } from './traffic.ts';
import type { Crew, World } from './world.ts';

export type Trial = Awaited<ReturnType<typeof openTrial>>;

export interface Scenario {
  readonly fault: number;
  /** The guarantee, as a sentence. */
  readonly title: string;
  readonly tried: string;
  readonly brokers?: number;
  /** Number of processes of the consuming services; default: one each. */
  readonly crew?: Crew;
  /** True when the log is replaced, so that offsets of rows cannot be compared with the log. */
  readonly replacesLog?: true;
  /** Causes the fault, repairs what it broke and ends its traffic. @returns what took effect; a 0: it did not */
  run(trial: Trial): Promise<Reached>;
}

const CREW: Crew = { linkers: 1, writers: 1 };
/** Distance between the seeds of several traffics in a trial, so that they differ from those of the next seeds. */
const SEED_STEP = 1_000_003;
let trials = 0;

/** Runs a scenario and checks the end state. @throws Error naming the seed; the deployment may then be damaged */
export async function runTrial(world: World, scenario: Scenario, seed: number): Promise<SeedEnd> {
  const opened: Opened = { processes: [], traffics: [] };
  try {
    const trial = await openTrial(world, seed, { crew: scenario.crew ?? CREW, opened });
    const from = await endsOf(world, TOPICS.messages.name);
    // Without merges, raw rows can be compared with the log, because copies stay.
    await query(world.deployment.engine, 'SYSTEM STOP MERGES events');
    const reached = await scenario.run(trial);
    await world.wires.openAll();
    await world.setCrew(CREW);
    const end = await checkEnd(world, { ledger: trial.ledger, environmentId: trial.environmentId, from, scenario });
    await query(world.deployment.engine, 'SYSTEM START MERGES events');
    return { ...end, reached };
  } catch (error) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    throw new Error(`fault ${scenario.fault}, FAULT_SEED=${seed} (${scenario.tried}): ${text}`, { cause: error });
  } finally {
    for (const traffic of opened.traffics) traffic.abort();
    await world.wires.openAll();
    await Promise.all(opened.processes.map((child) => child.close()));
  }
}

interface Opened {
  readonly processes: ServiceProcess[];
  readonly traffics: Traffic[];
}

/** Opens a run of one scenario with one seed. @param opened what the caller closes */
async function openTrial(world: World, seed: number, { crew: wanted, opened }: { crew: Crew; opened: Opened }) {
  const crew = await world.setCrew(wanted);
  const environmentId = `test-faults-${++trials}`;
  const key = await world.deployment.addEnvironment(environmentId);
  const ledger = createLedger(seed);
  const launch = async (service: ServiceName, settings?: Record<string, string>) => {
    const child = await world.start(service, settings);
    opened.processes.push(child);
    return child;
  };
  return {
    world,
    seed,
    /** Chooses the moments of faults. The traffic has separate generators with the same seed. */
    random: createRandom(seed),
    ledger,
    environmentId,
    key,
    crew,
    launch,
    /** Starts a further process, waits until it is ready, and ends it with the trial. */
    start: async (service: ServiceName, settings?: Record<string, string>) => {
      const child = await launch(service, settings);
      await child.whenReady();
      return child;
    },
    /** Opens traffic to these gateways from the trial's seed. A second call sends other messages. */
    openTraffic: (gateways: readonly ServiceProcess[], options: Partial<TrafficOptions> = {}) => {
      const own = seed + SEED_STEP * opened.traffics.length;
      const traffic = new Traffic({ seed: own, ledger, key, gateways, ...options });
      opened.traffics.push(traffic);
      return traffic;
    },
  };
}
