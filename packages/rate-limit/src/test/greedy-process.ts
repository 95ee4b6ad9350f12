import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { openSharedLimiter, type RatePolicy } from '../index.ts';
import { openRedisBalances } from '../redis/index.ts';

/** What a greedy process is to do: its last argument, as JSON. */
export interface Greed {
  url: string;
  namespace: string;
  policy: RatePolicy;
  cost: number;
  /** How long it is greedy. */
  forMs: number;
}

export interface Outcome {
  readonly charges: [at: number, units: number][];
  readonly changes: boolean[];
}

/**
 * Reports when it is ready. From the first message on, it sends as many requests as the limit allows for the whole time, and
 * then reports the units it was allowed, with their times.
 */
const { url, namespace, policy, cost, forMs } = JSON.parse(process.argv.at(-1) ?? '') as Greed;
const balances = openRedisBalances({ url, namespace });
const changes: boolean[] = [];
// A busy machine may stall all processes. How soon that counts as an outage is not what is tested here.
const limiter = openSharedLimiter({ balances, settleMaxMs: 10_000, onShared: (shared) => changes.push(shared) });
const charges: [at: number, units: number][] = [];
while (
  !(await balances.charge([]).then(
    () => true,
    () => false,
  ))
)
  await delay(10);
const started = once(process, 'message');
process.send?.('ready');
await started;
const endAt = Date.now() + forMs;
while (Date.now() < endAt) {
  const bucket = limiter.bucket('greedy', policy);
  for (let times = 0; times < 50; times++) {
    if (!(await bucket.admit()).allowed) break;
    bucket.charge(cost);
    charges.push([Date.now(), cost]);
  }
  await delay(1);
}
await limiter.close();
await balances.close();
process.send?.({ charges, changes } satisfies Outcome);
process.disconnect();
