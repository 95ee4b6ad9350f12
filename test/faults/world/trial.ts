import { Agent } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { TOPICS } from '@playline/contracts';
import { createRandom, type Random } from '@playline/testkit/random';
import { type Batch, createTraffic } from '../../simulate/game/traffic.ts';
import { createLedger as createOutcomes, createRun, sequenceOfId, toMessageId } from '../../simulate/run.ts';
import { query } from './clickhouse.ts';
import { checkEnd, endsOf } from './end-check.ts';
import { type Attempt, post } from './post.ts';
import type { Reached, SeedEnd } from './report.ts';
import type { ServiceName, ServiceProcess } from './service-process.ts';
import { waitFor } from './wait.ts';
import type { ServiceCounts, World } from './world.ts';

/** What a trial's clients know about their messages: outcomes, and every request. */
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
    /** Creates the id for a message that will be sent. The message may be stored even if no response arrives. */
    newId: () => {
      const sequence = outcomes.take();
      outcomes.set(sequence, 'unknown');
      return toMessageId(run, sequence);
    },
    note: (ids: readonly string[], attempt: Attempt) => {
      attempts.push(attempt);
      if (attempt.status < 200 || attempt.status >= 300) return;
      const { accepted } = JSON.parse(attempt.text) as { accepted?: number };
      if (accepted !== ids.length) throw new Error(`${ids.length} valid messages were sent: ${attempt.text}`);
      for (const id of ids) outcomes.set(sequenceOfId(id), 'accepted');
    },
  };
}

interface TrafficOptions {
  seed: number;
  ledger: Ledger;
  key: string;
  /** Gateways to send to. Some may be down, which a client cannot know. */
  gateways: readonly Pick<ServiceProcess, 'url'>[];
  clients?: number;
  batchMax?: number;
  /** Maximum length of an event's filler; default: no filler. */
  fillMax?: number;
  restMaxMs?: number;
}

/** Few players, so that the same identities recur on all partitions. */
const PLAYERS = 40;
/** A killed broker takes up to fifteen seconds to restart, and longer on a busy machine. */
const CLOSE_MAX_MS = 90_000;

/** Statuses after which clients resend the same ids. 0 means no response. */
const isResent = (status: number) => status === 0 || status === 429 || status >= 500;

/** Clients that send batches until they are stopped. Each batch is resent until it gets a 2xx. */
class Traffic {
  readonly #options: TrafficOptions;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #clients: Promise<void>[];
  #gateways: TrafficOptions['gateways'];
  #stopping = false;
  #aborted = false;
  #acknowledged = 0;
  #fault: Error | null = null;

  constructor(options: TrafficOptions) {
    this.#options = options;
    this.#gateways = options.gateways;
    const { clients = 6, seed } = options;
    this.#clients = Array.from({ length: clients }, (_, index) =>
      // One seed per client, so that its messages do not depend on the speed of other clients.
      this.#run(seed * 1_000 + index).catch((error) => {
        this.#fault ??= error as Error;
      }),
    );
  }

  async #run(seed: number): Promise<void> {
    const { batchMax = 12, restMaxMs = 60, fillMax = 0, ledger } = this.#options;
    const random = createRandom(seed);
    const run = { ...ledger.run, seed };
    const game = { run, ledger: ledger.outcomes, players: PLAYERS, brokenShare: 0, batchMax, fillMax };
    const traffic = createTraffic(game);
    while (!this.#stopping) {
      await this.#deliver(traffic.next(Date.now()), random);
      await delay(random.integer(0, restMaxMs));
    }
  }

  async #deliver({ body, sound }: Batch, random: Random): Promise<void> {
    const { ledger, key } = this.#options;
    for (const { sequence } of sound) ledger.outcomes.set(sequence, 'unknown');
    const ids = sound.map(({ sequence }) => toMessageId(ledger.run, sequence));
    for (;;) {
      const attempt = await post({ url: random.pick(this.#gateways).url, key, body, agent: this.#agent });
      ledger.note(ids, attempt);
      if (this.#aborted) return;
      if (!isResent(attempt.status)) {
        if (attempt.status !== 200) throw new Error(`a valid batch got status ${attempt.status}: ${attempt.text}`);
        this.#acknowledged += 1;
        return;
      }
      await delay(random.integer(50, 200));
    }
  }

  /** Resolves when this many more batches have been acknowledged. */
  async flows(batches: number): Promise<void> {
    const goal = this.#acknowledged + batches;
    const isDone = () => this.#fault !== null || this.#acknowledged >= goal;
    await waitFor(`${batches} more batches are acknowledged`, isDone);
    if (this.#fault !== null) throw this.#fault;
  }

  redirect(gateways: TrafficOptions['gateways']): void {
    this.#gateways = gateways;
  }

  /** Stops immediately, even with batches in flight. For a trial that has failed. */
  abort(): void {
    this.#stopping = true;
    this.#aborted = true;
    this.#agent.destroy();
  }

  /**
   * Stops sending. Resolves when every batch in flight is acknowledged.
   * @throws Error when a batch is not acknowledged
   */
  async close(): Promise<void> {
    this.#stopping = true;
    const late = delay(CLOSE_MAX_MS, 'late', { ref: false });
    const end = await Promise.race([Promise.all(this.#clients), late]);
    this.#agent.destroy();
    if (this.#fault !== null) throw this.#fault;
    if (end === 'late') throw new Error(`batches were still not acknowledged after ${CLOSE_MAX_MS} ms`);
  }
}

export type Trial = Awaited<ReturnType<typeof openTrial>>;

export interface Scenario {
  readonly fault: number;
  /** The guarantee, as a sentence. If present, `npm run test:all` tries the fault. */
  readonly title?: string;
  readonly tried: string;
  readonly brokers?: number;
  /** Number of processes per consuming service; default: one each. */
  readonly services?: ServiceCounts;
  /** True when the log is replaced, so that offsets of rows cannot be compared with the log. */
  readonly replacesLog?: true;
  /** Causes the fault, repairs its damage and ends the traffic. @returns counts of what took effect */
  run(trial: Trial): Promise<Reached>;
}

const ONE_EACH: ServiceCounts = { linkers: 1, writers: 1 };
/** Distance between the traffic seeds in a trial, so that they differ from the next trial's seeds. */
const SEED_STEP = 1_000_003;
let trials = 0;

/** Runs a scenario and checks the end state. @throws Error with the seed; the deployment may then be damaged */
export async function runTrial(world: World, scenario: Scenario, seed: number): Promise<SeedEnd> {
  const opened: Opened = { processes: [], traffics: [] };
  try {
    const trial = await openTrial(world, seed, { services: scenario.services ?? ONE_EACH, opened });
    const from = await endsOf(world, TOPICS.messages.name);
    // Without merges, duplicate rows stay, so that raw rows can be compared with the log.
    await query(world.deployment.engine, 'SYSTEM STOP MERGES events');
    const reached = await scenario.run(trial);
    await world.wires.openAll();
    await world.setServices(ONE_EACH);
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

/** Opens a trial with one seed. @param opened collects what the caller must close */
async function openTrial(
  world: World,
  seed: number,
  { services: wanted, opened }: { services: ServiceCounts; opened: Opened },
) {
  const services = await world.setServices(wanted);
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
    /** Chooses when faults happen. The traffic has separate generators with the same seed. */
    random: createRandom(seed),
    ledger,
    environmentId,
    key,
    services,
    launch,
    /** Starts another process and waits until it is ready. It is stopped when the trial ends. */
    start: async (service: ServiceName, settings?: Record<string, string>) => {
      const child = await launch(service, settings);
      await child.whenReady();
      return child;
    },
    /** Opens traffic to the gateways with a seed derived from the trial's seed. Each call sends other messages. */
    openTraffic: (gateways: readonly ServiceProcess[], options: Partial<TrafficOptions> = {}) => {
      const trafficSeed = seed + SEED_STEP * opened.traffics.length;
      const traffic = new Traffic({ seed: trafficSeed, ledger, key, gateways, ...options });
      opened.traffics.push(traffic);
      return traffic;
    },
  };
}
