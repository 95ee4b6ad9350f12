import { Agent } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { createRandom, type Random } from '@playline/testkit/random';
import { type Batch, createTraffic } from '../../simulate/game/traffic.ts';
import { toMessageId } from '../../simulate/run.ts';
import type { Ledger } from './ledger.ts';
import { post } from './post.ts';
import type { ServiceProcess } from './service-process.ts';
import { waitFor } from './wait.ts';

export interface TrafficOptions {
  seed: number;
  ledger: Ledger;
  key: string;
  /** Gateways to send to. Some may be down, because a client cannot know. */
  gateways: readonly Pick<ServiceProcess, 'url'>[];
  clients?: number;
  batchMax?: number;
  /** Length of the longest filler of an event; by default it has none. */
  fillMax?: number;
  restMaxMs?: number;
}

/** Few, so that the same identities recur on all partitions. */
const PLAYERS = 40;
/** A killed broker takes up to fifteen seconds to come back, and longer on a busy machine. */
const CLOSE_MAX_MS = 90_000;

/** Statuses after which clients resend the same ids. 0 means no answer. */
const isResent = (status: number) => status === 0 || status === 429 || status >= 500;

/** Clients that send batches until they are stopped. Each batch is resent until a 2xx. */
export class Traffic {
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
      // A seed for each client, so that its messages do not depend on the speed of other clients.
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
        if (attempt.status !== 200) throw new Error(`a valid batch was answered ${attempt.status}: ${attempt.text}`);
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

  /** Stops immediately, also with batches in flight. For a trial that has failed. */
  abort(): void {
    this.#stopping = true;
    this.#aborted = true;
    this.#agent.destroy();
  }

  /** Sends no further batch. Resolves when every batch in flight is acknowledged. @throws Error when one is not */
  async close(): Promise<void> {
    this.#stopping = true;
    const late = delay(CLOSE_MAX_MS, 'late', { ref: false });
    const end = await Promise.race([Promise.all(this.#clients), late]);
    this.#agent.destroy();
    if (this.#fault !== null) throw this.#fault;
    if (end === 'late') throw new Error(`batches were still not acknowledged after ${CLOSE_MAX_MS} ms`);
  }
}
