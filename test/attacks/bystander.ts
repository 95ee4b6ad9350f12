import { randomUUID } from 'node:crypto';
import { quantileOf } from '../bench/quantile.ts';

/**
 * A caller who has nothing to do with an attack: posts one event, reads a page of history and opens the sign-in page, in
 * turn, from a process of its own. `lap` makes it report on the requests that ended since the last one.
 */
export interface BystanderTargets {
  gateway: string;
  chainApi: string;
  portal: string;
  publishableKey: string;
  /** For the chain API: all calls of this machine come from one address, which may send 1,500 in five minutes. */
  rateLimitKey: string;
}

export interface Lap {
  requests: number;
  /** Requests that ended with a fault, a time-out or a status of 400 and above. */
  errors: Record<string, number>;
  p50Ms: number;
  p99Ms: number;
}

/** Between two requests of one kind. */
const PACE_MS = 40;
/** A caller who waits longer has gone. */
const PATIENCE_MS = 15_000;

const targets = JSON.parse(process.argv[2] ?? '') as BystanderTargets;
let durations: number[] = [];
let errors: Record<string, number> = {};

const requests: Record<string, () => Promise<Response>> = {
  gateway: () =>
    fetch(`${targets.gateway}/v1/audience/messages`, {
      method: 'POST',
      signal: AbortSignal.timeout(PATIENCE_MS),
      headers: { 'content-type': 'application/json', 'x-service-publishable-key': targets.publishableKey },
      body: JSON.stringify({
        messages: [
          {
            type: 'track',
            messageId: randomUUID(),
            eventTimestamp: new Date().toISOString(),
            eventName: 'bystander',
            anonymousId: 'bystander',
          },
        ],
      }),
    }),
  'chain-api': () =>
    fetch(`${targets.chainApi}/v1/chains/demo-chain/activity-history?page_size=5`, {
      signal: AbortSignal.timeout(PATIENCE_MS),
      headers: { 'x-api-key': targets.rateLimitKey },
    }),
  portal: () => fetch(`${targets.portal}/sign-in`, { signal: AbortSignal.timeout(PATIENCE_MS) }),
};

async function repeat(name: string, request: () => Promise<Response>): Promise<void> {
  const startedAt = performance.now();
  try {
    const response = await request();
    await response.arrayBuffer();
    if (response.status >= 400) errors[`${name} ${response.status}`] = (errors[`${name} ${response.status}`] ?? 0) + 1;
  } catch (error) {
    const fault = `${name} ${(error as Error).name}`;
    errors[fault] = (errors[fault] ?? 0) + 1;
  }
  durations.push(performance.now() - startedAt);
  setTimeout(() => void repeat(name, request), PACE_MS);
}

process.on('message', () => {
  const { length } = durations;
  const lap: Lap = { requests: length, errors, p50Ms: quantileOf(durations, 0.5), p99Ms: quantileOf(durations, 0.99) };
  durations = [];
  errors = {};
  process.send?.(lap);
});
for (const [name, request] of Object.entries(requests)) void repeat(name, request);
