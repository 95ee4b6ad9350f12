// Generates load from a separate process. For a `Load`, sends 'begin' to the parent at the start of the measurement
// window and the results at its end. For a `Posting`, posts each message once and sends the start time and duration.
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { driveClients, toRequest } from './load-client.ts';
import { createBody, createBodyOf, createRenewer, type Traffic } from './messages.ts';
import { quantileOf } from './quantile.ts';

export interface Load {
  port: number;
  path: string;
  headers: Record<string, string>;
  batchSize: number;
  traffic?: Traffic;
  connections: number;
  warmUpMs: number;
  /** Maximum length of the window. A message from the parent ends it earlier. */
  windowMs: number;
  // If present, requests are scheduled at this rate, and latency is measured from the scheduled time.
  requestsPerSecond?: number;
}

export interface LoadResult {
  events: number;
  requests: number;
  refused: Record<string, number>;
  p50Ms: number;
  p99Ms: number;
  seconds: number;
}

/** Messages are created before the window, so that only the server is measured. */
const PREPARED_MESSAGES = 20_000;
/** Enough distinct bodies to exceed the CPU cache. */
const PREPARED_BODIES_MAX = 2_000;

/** @returns a function that returns the next request and its scheduled time */
function createSchedule({ path, headers, batchSize: size, traffic = 'usual', requestsPerSecond }: Load) {
  const now = new Date();
  const count = Math.min(PREPARED_BODIES_MAX, Math.ceil(PREPARED_MESSAGES / size));
  const requests = Array.from({ length: count }, (_, index) =>
    toRequest(path, headers, createBodyOf(traffic, { n: index * size, size, now })),
  );
  const requestOf = createRenewer(traffic, requests);
  const startMs = performance.now();
  let sent = 0;
  return () => {
    const n = sent++;
    const request = requestOf(n % requests.length);
    const dueMs = requestsPerSecond === undefined ? performance.now() : startMs + (n * 1000) / requestsPerSecond;
    return { request, dueMs };
  };
}

async function run(load: Load): Promise<void> {
  const next = createSchedule(load);
  let state: 'warming' | 'measuring' | 'done' = 'warming';
  let accepted = 0;
  const refused: Record<string, number> = {};
  const latenciesMs: number[] = [];
  const driving = driveClients(load.port, load.connections, async (client) => {
    while (state !== 'done') {
      const { request, dueMs } = next();
      const waitMs = dueMs - performance.now();
      if (waitMs > 0) await delay(waitMs);
      const status = await client.send(request);
      if (state !== 'measuring') continue;
      if (status === 200) accepted += 1;
      else refused[status] = (refused[status] ?? 0) + 1;
      latenciesMs.push(performance.now() - dueMs);
    }
  });
  await Promise.race([delay(load.warmUpMs), driving]);
  state = 'measuring';
  process.send?.('begin');
  const startMs = performance.now();
  const ended = new AbortController();
  await Promise.race([delay(load.windowMs, undefined, ended), once(process, 'message', ended), driving]);
  ended.abort();
  state = 'done';
  const seconds = (performance.now() - startMs) / 1000;
  const quantile = (q: number) => Number(quantileOf(latenciesMs, q).toFixed(1));
  process.send?.({
    events: accepted * load.batchSize,
    requests: latenciesMs.length,
    refused,
    p50Ms: quantile(0.5),
    p99Ms: quantile(0.99),
    seconds,
  } satisfies LoadResult);
  await driving;
}

export interface Posting {
  port: number;
  path: string;
  headers: Record<string, string>;
  messages: number;
  batchSize: number;
  // If present, batches are scheduled at this rate, and event times are the scheduled times.
  messagesPerSecond?: number;
}

export interface Posted {
  startMs: number;
  seconds: number;
}

const CONNECTIONS_BUSY = 32;
/** Interval between batches on a connection. Short enough that the server does not close the connection as idle. */
const CONNECTION_INTERVAL_S = 0.5;
const CONNECTIONS_MIN = 4;

async function post({ port, path, headers, messages, batchSize, messagesPerSecond }: Posting): Promise<Posted> {
  const batches = Math.ceil(messages / batchSize);
  const createRequest = (n: number, time: Date) => toRequest(path, headers, createBody(n * batchSize, batchSize, time));
  // Without a rate, all batches are created before the measurement, so that only the servers' work is measured.
  const now = new Date();
  const prepared =
    messagesPerSecond === undefined ? Array.from({ length: batches }, (_, n) => createRequest(n, now)) : null;
  const perInterval = Math.ceil(((messagesPerSecond ?? 0) / batchSize) * CONNECTION_INTERVAL_S);
  const connections = prepared === null ? Math.max(CONNECTIONS_MIN, perInterval) : CONNECTIONS_BUSY;
  const timestampMs = Date.now();
  const startMs = performance.now();
  let next = 0;
  await driveClients(port, connections, async (client) => {
    while (next < batches) {
      const n = next++;
      const offsetMs = (n * batchSize * 1_000) / (messagesPerSecond ?? 1);
      const request = prepared?.[n] ?? createRequest(n, new Date(timestampMs + offsetMs));
      const waitMs = prepared === null ? startMs + offsetMs - performance.now() : 0;
      if (waitMs > 0) await delay(waitMs);
      const status = await client.send(request);
      if (status !== 200) throw new Error(`a batch failed with status ${status}`);
    }
  });
  return { startMs: timestampMs, seconds: (performance.now() - startMs) / 1000 };
}

const task = JSON.parse(process.argv[2] ?? '{}') as Load | Posting;
if ('messages' in task) process.send?.(await post(task));
else await run(task);
process.disconnect?.();
