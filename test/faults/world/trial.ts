import { Agent } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { TOPICS } from '@playline/contracts';
import { createRandom, type Random } from '@playline/testkit/random';
import { type Batch, createTraffic } from '../../simulate/game/traffic.ts';
import { createLedger as createOutcomes, createRun, sequenceOfId, toMessageId } from '../../simulate/run.ts';
import { query } from './clickhouse.ts';
import { checkEnd, endsOf } from './end-check.ts';
import { type Attempt, post } from './post.ts';
import type { Effects, SeedEnd } from './report.ts';
import type { ServiceName, ServiceProcess } from './service-process.ts';
import { waitFor } from './wait.ts';
import type { ServiceCounts, World } from './world.ts';

export type Ledger = ReturnType<typeof createLedger>;

function createLedger(seed: number) {
  const [run, outcomes] = [createRun(seed, Date.now()), createOutcomes()];
  const attempts: Attempt[] = [];
  return {
    run,
    outcomes,
    attempts,
    get sent() {
      return outcomes.taken - outcomes.count('rejected');
    },
    get acknowledged() {
      return outcomes.count('accepted');
    },
    /** Creates a message id. The outcome is `unknown` until a response arrives, because the message may be stored. */
    newId: () => {
      const sequence = outcomes.take();
      outcomes.set(sequence, 'unknown');
      return toMessageId(run, sequence);
    },
    record: (ids: readonly string[], attempt: Attempt) => {
      attempts.push(attempt);
      if (attempt.status < 200 || attempt.status >= 300) return;
      const { accepted } = JSON.parse(attempt.text) as { accepted?: number };
      if (accepted !== ids.length) throw new Error(`response to ${ids.length} valid messages: ${attempt.text}`);
      for (const id of ids) outcomes.set(sequenceOfId(id), 'accepted');
    },
  };
}

interface TrafficOptions {
  seed: number;
  ledger: Ledger;
  key: string;
  gateways: readonly Pick<ServiceProcess, 'url'>[];
  clients?: number;
  batchMax?: number;
  /** Maximum length of an event's filler; default: no filler. */
  fillerMax?: number;
  pauseMaxMs?: number;
}

/** Few players, so that identities recur on all partitions. */
const PLAYERS = 40;
/** A killed broker takes up to 15 s to restart, and longer on a busy machine. */
const CLOSE_MAX_MS = 90_000;

/** True for statuses after which clients resend a batch. 0 means no response. */
const isResent = (status: number) => status === 0 || status === 429 || status >= 500;

/** Clients that send batches until `close`, and resend each batch until they get a 2xx. */
class Traffic {
  readonly #options: TrafficOptions;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #clients: Promise<void>[];
  #gateways: TrafficOptions['gateways'];
  #stopping = false;
  #aborted = false;
  #acknowledged = 0;
  #error: Error | null = null;

  constructor(options: TrafficOptions) {
    this.#options = options;
    this.#gateways = options.gateways;
    const { clients = 6, seed } = options;
    this.#clients = Array.from({ length: clients }, (_, index) =>
      // Each client has a separate seed, so that its messages do not depend on the timing of other clients.
      this.#run(seed * 1_000 + index).catch((error) => {
        this.#error ??= error as Error;
      }),
    );
  }

  async #run(seed: number): Promise<void> {
    const { batchMax = 12, pauseMaxMs = 60, fillerMax = 0, ledger } = this.#options;
    const random = createRandom(seed);
    const run = { ...ledger.run, seed };
    const game = { run, ledger: ledger.outcomes, players: PLAYERS, brokenFraction: 0, batchMax, fillMax: fillerMax };
    const traffic = createTraffic(game);
    while (!this.#stopping) {
      await this.#deliver(traffic.next(Date.now()), random);
      await delay(random.integer(0, pauseMaxMs));
    }
  }

  async #deliver({ body, valid }: Batch, random: Random): Promise<void> {
    const { ledger, key } = this.#options;
    for (const { sequence } of valid) ledger.outcomes.set(sequence, 'unknown');
    const ids = valid.map(({ sequence }) => toMessageId(ledger.run, sequence));
    for (;;) {
      const attempt = await post({ url: random.pick(this.#gateways).url, key, body, agent: this.#agent });
      ledger.record(ids, attempt);
      if (this.#aborted) return;
      if (!isResent(attempt.status)) {
        if (attempt.status !== 200) throw new Error(`status ${attempt.status} for a valid batch: ${attempt.text}`);
        this.#acknowledged += 1;
        return;
      }
      await delay(random.integer(50, 200));
    }
  }

  /** Waits until `batches` more batches are acknowledged. */
  async awaitBatches(batches: number): Promise<void> {
    const goal = this.#acknowledged + batches;
    const isDone = () => this.#error !== null || this.#acknowledged >= goal;
    await waitFor(`${batches} more batches are acknowledged`, isDone);
    if (this.#error !== null) throw this.#error;
  }

  redirect(gateways: TrafficOptions['gateways']): void {
    this.#gateways = gateways;
  }

  abort(): void {
    this.#stopping = true;
    this.#aborted = true;
    this.#agent.destroy();
  }

  /** Stops sending and waits until every batch in flight is acknowledged. @throws Error after a timeout */
  async close(): Promise<void> {
    this.#stopping = true;
    const timeout = delay(CLOSE_MAX_MS, 'timeout', { ref: false });
    const end = await Promise.race([Promise.all(this.#clients), timeout]);
    this.#agent.destroy();
    if (this.#error !== null) throw this.#error;
    if (end === 'timeout') throw new Error(`batches were not acknowledged within ${CLOSE_MAX_MS} ms`);
  }
}

export type Trial = Awaited<ReturnType<typeof openTrial>>;

export interface Scenario {
  readonly fault: number;
  /** The guarantee, as a test title. If present, `npm run test:all` tries the fault. */
  readonly title?: string;
  readonly tried: string;
  readonly brokers?: number;
  /** Number of processes per service; default: one per service. */
  readonly services?: ServiceCounts;
  /** The scenario replaces the log, so rows cannot be compared with the log by offset. */
  readonly replacesLog?: true;
  /** Injects the fault, repairs the damage and stops the traffic. @returns counts of the effects */
  run(trial: Trial): Promise<Effects>;
}

const ONE_PER_SERVICE: ServiceCounts = { linkers: 1, writers: 1 };
/** Difference between traffic seeds within a trial, so that they do not overlap with the next trial's seeds. */
const SEED_STEP = 1_000_003;
let trials = 0;

/** Runs a scenario and checks the final state. @throws Error with the seed; the deployment may be damaged */
export async function runTrial(world: World, scenario: Scenario, seed: number): Promise<SeedEnd> {
  const opened: Opened = { processes: [], traffics: [] };
  try {
    const trial = await openTrial(world, seed, { services: scenario.services ?? ONE_PER_SERVICE, opened });
    const from = await endsOf(world, TOPICS.messages.name);
    // Merges would remove duplicate rows before raw rows are compared with the log.
    await query(world.deployment.engine, 'SYSTEM STOP MERGES events');
    const effects = await scenario.run(trial);
    await world.proxies.openAll();
    await world.setServices(ONE_PER_SERVICE);
    const end = await checkEnd(world, { ledger: trial.ledger, environmentId: trial.environmentId, from, scenario });
    await query(world.deployment.engine, 'SYSTEM START MERGES events');
    return { ...end, effects };
  } catch (error) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    throw new Error(`fault ${scenario.fault}, FAULT_SEED=${seed} (${scenario.tried}): ${text}`, { cause: error });
  } finally {
    for (const traffic of opened.traffics) traffic.abort();
    await world.proxies.openAll();
    await Promise.all(opened.processes.map((child) => child.close()));
  }
}

interface Opened {
  readonly processes: ServiceProcess[];
  readonly traffics: Traffic[];
}

/** @param opened collects resources that the caller must close */
async function openTrial(
  world: World,
  seed: number,
  { services: counts, opened }: { services: ServiceCounts; opened: Opened },
) {
  const services = await world.setServices(counts);
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
    /** Determines when faults are injected. The traffic uses separate generators. */
    random: createRandom(seed),
    ledger,
    environmentId,
    key,
    services,
    launch,
    /** Starts a process and waits until the service is ready. The process is stopped at the end of the trial. */
    start: async (service: ServiceName, settings?: Record<string, string>) => {
      const child = await launch(service, settings);
      await child.whenReady();
      return child;
    },
    openTraffic: (gateways: readonly ServiceProcess[], options: Partial<TrafficOptions> = {}) => {
      const trafficSeed = seed + SEED_STEP * opened.traffics.length;
      const traffic = new Traffic({ seed: trafficSeed, ledger, key, gateways, ...options });
      opened.traffics.push(traffic);
      return traffic;
    },
  };
}
