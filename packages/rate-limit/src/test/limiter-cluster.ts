import { vi } from 'vitest';
import { openSharedLimiter, type RatePolicy, type SharedLimiter, unsettledMax } from '../index.ts';
import type { Charge, SharedBalances } from '../shared-limiter.ts';
import { createMemoryBalances } from './memory/index.ts';

/** Maximum cost of a request. */
export const COST_MAX = 20;

/** A simulated request. The cost becomes known `readMs` after admission. */
export interface Request {
  process: number;
  cost: number;
  readMs: number;
}

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Simulates several processes that share a bucket, with fake timers. Records every charge. */
export class LimiterCluster {
  readonly charges: { at: number; cost: number }[] = [];
  refused = 0;
  readonly #policy: RatePolicy;
  readonly #limiters: SharedLimiter[];
  readonly #inFlight: number[];
  readonly #inFlightMax: number[];

  /**
   * @param latenciesMs one-way latencies to the shared bucket, used cyclically
   */
  constructor(policy: RatePolicy, processes: number, latenciesMs: readonly number[]) {
    const balances = slowBalances(latenciesMs);
    this.#policy = policy;
    this.#limiters = Array.from({ length: processes }, () => openSharedLimiter({ balances }));
    this.#inFlight = this.#limiters.map(() => 0);
    this.#inFlightMax = this.#limiters.map(() => 0);
  }

  async request({ process, cost, readMs }: Request): Promise<void> {
    const position = process % this.#limiters.length;
    const bucket = (this.#limiters[position] as SharedLimiter).bucket('key', this.#policy);
    this.#inFlight[position] = (this.#inFlight[position] ?? 0) + 1;
    this.#inFlightMax[position] = Math.max(this.#inFlightMax[position] ?? 0, this.#inFlight[position]);
    const admitted = bucket.admit();
    const { allowed } = admitted instanceof Promise ? await admitted : admitted;
    if (allowed && readMs > 0) await pause(readMs);
    if (allowed) {
      bucket.charge(cost);
      this.charges.push({ at: performance.now(), cost });
    } else {
      this.refused++;
    }
    this.#inFlight[position] -= 1;
  }

  /**
   * The documented upper bound: the sum of each process's unsettled maximum and concurrent requests at maximum cost.
   */
  get bound(): number {
    return this.#inFlightMax.reduce((sum, requests) => sum + unsettledMax(this.#policy) + requests * COST_MAX, 0);
  }

  /** Returns the maximum excess over burst and rate in any window that starts and ends with a charge. */
  worstExcess(): number {
    const { burst, perSecond } = this.#policy;
    let worst = -Infinity;
    for (const [from, first] of this.charges.entries()) {
      let sum = 0;
      for (const { at, cost } of this.charges.slice(from)) {
        sum += cost;
        worst = Math.max(worst, sum - burst - ((at - first.at) * perSecond) / 1000);
      }
    }
    return worst;
  }

  async close(): Promise<void> {
    const closed = this.#limiters.map((limiter) => limiter.close());
    await vi.advanceTimersByTimeAsync(1000);
    await Promise.all(closed);
  }
}

function slowBalances(latenciesMs: readonly number[]): SharedBalances {
  const memory = createMemoryBalances();
  let next = 0;
  const latency = () => latenciesMs[next++ % latenciesMs.length] ?? 0;
  return {
    charge: async (charges: readonly Charge[]) => {
      await pause(latency());
      const backlogs = await memory.charge(charges);
      await pause(latency());
      return backlogs;
    },
  };
}
