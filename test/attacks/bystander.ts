import { randomUUID } from 'node:crypto';
import { quantileOf } from '../bench/quantile.ts';

// A well-behaved client in a separate process: posts events, reads history and opens the sign-in page.
export interface BystanderTargets {
  gateway: string;
  chainApi: string;
  portal: string;
  publishableKey: string;
  /** Without this key, the chain API allows each address 1,500 calls in five minutes. */
  rateLimitKey: string;
}

export interface Results {
  requests: number;
  errors: Record<string, number>;
  p50Ms: number;
  p99Ms: number;
}

const INTERVAL_MS = 40;
const TIMEOUT_MS = 15_000;

const targets = JSON.parse(process.argv[2] ?? '') as BystanderTargets;
let durations: number[] = [];
let errors: Record<string, number> = {};

const send = (url: string, init: RequestInit = {}) => fetch(url, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) });

const requests: Record<string, () => Promise<Response>> = {
  gateway: () => {
    const ids = { messageId: randomUUID(), eventTimestamp: new Date().toISOString() };
    const messages = [{ type: 'track', ...ids, eventName: 'bystander', anonymousId: 'bystander' }];
    const headers = { 'content-type': 'application/json', 'x-service-publishable-key': targets.publishableKey };
    return send(`${targets.gateway}/v1/audience/messages`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ messages }),
    });
  },
  'chain-api': () => {
    const headers = { 'x-api-key': targets.rateLimitKey };
    return send(`${targets.chainApi}/v1/chains/demo-chain/activity-history?page_size=5`, { headers });
  },
  portal: () => send(`${targets.portal}/sign-in`),
};

async function repeat(name: string, request: () => Promise<Response>): Promise<void> {
  const startedAt = performance.now();
  const count = (reason: string | number) => {
    errors[`${name} ${reason}`] = (errors[`${name} ${reason}`] ?? 0) + 1;
  };
  try {
    const response = await request();
    await response.arrayBuffer();
    if (response.status >= 400) count(response.status);
  } catch (error) {
    count((error as Error).name);
  }
  durations.push(performance.now() - startedAt);
  setTimeout(() => void repeat(name, request), INTERVAL_MS);
}

process.on('message', () => {
  const { length } = durations;
  const results = { requests: length, errors, p50Ms: quantileOf(durations, 0.5), p99Ms: quantileOf(durations, 0.99) };
  durations = [];
  errors = {};
  process.send?.(results satisfies Results);
});
for (const [name, request] of Object.entries(requests)) void repeat(name, request);
