// A process that generates load on a server. It sends 'begin' when the window begins, and its results when the window
// ends. Given a number of messages, it posts each message once, and sends the start time and duration.
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { driveClients, toRequest } from './load-client.ts';
import { createBody, createBodyOf, createRenewal, type Traffic } from './messages.ts';
import { quantileOf } from './quantile.ts';

export interface Load {
  port: number;
  path: string;
  headers: Record<string, string>;
  batchSize: number;
  traffic?: Traffic;
  connections: number;
  warmUpMs: number;
  /** Maximum length: any message from the parent process ends the window earlier. */
  windowMs: number;
  // Requests are due at this rate, and latency counts from when a request was due. Absent: every connection sends its
  // next request as soon as it has a response.
  requestsPerSecond?: number;
}

/** Results within the window. */
export interface LoadResult {
  /** Number of messages in batches with status 200, including rejected messages. */
  events: number;
  requests: number;
  refused: Record<string, number>;
  p50Ms: number;
  p99Ms: number;
  seconds: number;
}

/** Number of messages prepared before the window, so that it measures only the server. */
const PREPARED_MESSAGES = 20_000;
/** With fewer distinct bodies, all bodies would stay in the processor's cache. */
const PREPARED_BODIES_MAX = 2_000;

/** Creates a function that returns the next request and the time from which its latency counts. */
function createSchedule({ path, headers, batchSize: size, traffic = 'usual', requestsPerSecond }: Load) {
  const now = new Date();
  const count = Math.min(PREPARED_BODIES_MAX, Math.ceil(PREPARED_MESSAGES / size));
  const requests = Array.from({ length: count }, (_, index) =>
    toRequest(path, headers, createBodyOf(traffic, { n: index * size, size, now })),
  );
  const requestOf = traffic === 'every id new' ? createRenewal(requests) : (index: number) => requests[index] as Buffer;
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
  let state: 'warming' | 'counting' | 'over' = 'warming';
  let accepted = 0;
  const refused: Record<string, number> = {};
  const latenciesMs: number[] = [];
  const driving = driveClients(load.port, load.connections, async (client) => {
    while (state !== 'over') {
      const { request, dueMs } = next();
      const early = dueMs - performance.now();
      if (early > 0) await delay(early);
      const status = await client.send(request);
      if (state !== 'counting') continue;
      if (status === 200) accepted += 1;
      else refused[status] = (refused[status] ?? 0) + 1;
      latenciesMs.push(performance.now() - dueMs);
    }
  });
  await Promise.race([delay(load.warmUpMs), driving]);
  state = 'counting';
  process.send?.('begin');
  const startMs = performance.now();
  const ended = new AbortController();
  await Promise.race([delay(load.windowMs, undefined, ended), once(process, 'message', ended), driving]);
  ended.abort();
  state = 'over';
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
  // Batches are due at this rate, and a message's event time is the time when it was due. Absent: each connection posts
  // its next batch as soon as it has a response.
  messagesPerSecond?: number;
}

export interface Posted {
  /** Wall-clock time when the first batch was due. */
  startMs: number;
  seconds: number;
}

const CONNECTIONS_BUSY = 32;
/** With a rate, a due batch rarely waits for a connection, and the server closes no connection because it is idle. */
const CONNECTION_TURN_S = 0.5;
const CONNECTIONS_MIN = 4;

async function post({ port, path, headers, messages, batchSize, messagesPerSecond }: Posting): Promise<Posted> {
  const batches = Math.ceil(messages / batchSize);
  const createRequest = (n: number, time: Date) => toRequest(path, headers, createBody(n * batchSize, batchSize, time));
  // Without a rate, batches are prepared, so that the processor works only for the servers during the measurement.
  const now = new Date();
  const prepared =
    messagesPerSecond === undefined ? Array.from({ length: batches }, (_, n) => createRequest(n, now)) : null;
  const perTurn = Math.ceil(((messagesPerSecond ?? 0) / batchSize) * CONNECTION_TURN_S);
  const connections = prepared === null ? Math.max(CONNECTIONS_MIN, perTurn) : CONNECTIONS_BUSY;
  const timestampMs = Date.now();
  const startMs = performance.now();
  let next = 0;
  await driveClients(port, connections, async (client) => {
    while (next < batches) {
      const n = next++;
      const sinceMs = (n * batchSize * 1_000) / (messagesPerSecond ?? 1);
      const request = prepared?.[n] ?? createRequest(n, new Date(timestampMs + sinceMs));
      const early = prepared === null ? startMs + sinceMs - performance.now() : 0;
      if (early > 0) await delay(early);
      const status = await client.send(request);
      if (status !== 200) throw new Error(`a batch got status ${status}`);
    }
  });
  return { startMs: timestampMs, seconds: (performance.now() - startMs) / 1000 };
}

const given = JSON.parse(process.argv[2] ?? '{}') as Load | Posting;
if ('messages' in given) process.send?.(await post(given));
else await run(given);
process.disconnect?.();
