import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { type LoadClient, openLoadClient } from './load-client.ts';
import { createBodyOf, createRenewal, type Traffic } from './traffic.ts';

/** One load, with at most `connections` requests in flight. */
export interface Load {
  port: number;
  path: string;
  headers: Record<string, string>;
  batchSize: number;
  /** Absent: `usual`. */
  traffic?: Traffic;
  connections: number;
  warmUpMs: number;
  /** Upper bound: any message from the parent process ends the window sooner. */
  windowMs: number;
  /**
   * Requests are due at this rate. Their latency counts from when they were due, even if no connection was free.
   * Absent: every connection sends its next request as soon as it has an answer.
   */
  requestsPerSecond?: number;
}

/** Results of a load within its window. */
export interface LoadResult {
  /** Number of messages in batches answered with 200, rejected messages included. */
  events: number;
  requests: number;
  /** Number of other answers, by status. */
  refused: Record<string, number>;
  p50Ms: number;
  p99Ms: number;
  seconds: number;
}

/** Messages prepared ahead, so that the window measures the server and not the making of messages. */
const PREPARED_MESSAGES = 20_000;
/** With fewer different bodies, all would stay in the processor's cache. */
const PREPARED_BODIES_MAX = 2_000;

function createRequests({ path, headers, batchSize, traffic = 'usual' }: Load): Buffer[] {
  const now = new Date();
  const count = Math.min(PREPARED_BODIES_MAX, Math.ceil(PREPARED_MESSAGES / batchSize));
  return Array.from({ length: count }, (_, index) => {
    const body = createBodyOf(traffic, { n: index * batchSize, size: batchSize, now });
    const lines = Object.entries({
      host: '127.0.0.1',
      ...headers,
      'content-type': 'application/json',
      'content-length': body.length,
    });
    const head = `POST ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`;
    return Buffer.concat([Buffer.from(head), body]);
  });
}

interface Window {
  state: 'warming' | 'counting' | 'over';
  answered: number;
  refused: Record<string, number>;
  latenciesMs: number[];
}

/** A request, and the moment from which its latency counts. */
interface Due {
  request: Buffer;
  atMs: number;
}

async function drive(client: LoadClient, next: () => Due, window: Window): Promise<void> {
  while (window.state !== 'over') {
    const { request, atMs: start } = next();
    const early = start - performance.now();
    if (early > 0) await delay(early);
    const status = await client.send(request);
    if (window.state !== 'counting') continue;
    if (status === 200) window.answered += 1;
    else window.refused[status] = (window.refused[status] ?? 0) + 1;
    window.latenciesMs.push(performance.now() - start);
  }
}

function quantile(sorted: number[], q: number): number {
  return Number((sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? 0).toFixed(1));
}

function createSchedule(load: Load): () => Due {
  const requests = createRequests(load);
  const { requestsPerSecond, traffic } = load;
  const requestOf = traffic === 'every id new' ? createRenewal(requests) : (index: number) => requests[index] as Buffer;
  const startMs = performance.now();
  let sent = 0;
  return () => {
    const n = sent++;
    const request = requestOf(n % requests.length);
    const atMs = requestsPerSecond === undefined ? performance.now() : startMs + (n * 1000) / requestsPerSecond;
    return { request, atMs };
  };
}

/** Runs as a separate process. Sends its parent a message when the window begins, and the results when it ends. */
async function run(load: Load): Promise<void> {
  const next = createSchedule(load);
  const window: Window = { state: 'warming', answered: 0, refused: {}, latenciesMs: [] };
  const clients = await Promise.all(Array.from({ length: load.connections }, () => openLoadClient(load.port)));
  const driving = Promise.all(clients.map((client) => drive(client, next, window)));
  await delay(load.warmUpMs);
  window.state = 'counting';
  process.send?.('begin');
  const start = performance.now();
  const ended = new AbortController();
  await Promise.race([delay(load.windowMs, undefined, ended), once(process, 'message', ended)]);
  ended.abort();
  window.state = 'over';
  const seconds = (performance.now() - start) / 1000;
  const sorted = window.latenciesMs.sort((a, b) => a - b);
  const result: LoadResult = {
    events: window.answered * load.batchSize,
    requests: sorted.length,
    refused: window.refused,
    p50Ms: quantile(sorted, 0.5),
    p99Ms: quantile(sorted, 0.99),
    seconds,
  };
  process.send?.(result);
  await driving;
  for (const client of clients) client.close();
}

await run(JSON.parse(process.argv[2] ?? '{}') as Load);
process.disconnect?.();
