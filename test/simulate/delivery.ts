import http from 'node:http';
import https from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** Cuts the connection after this time, with or without an answer. */
  readonly cutAfterMs: number;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly text: string;
}

/**
 * Sends one request with Node's own client, which needs little CPU compared with the stack.
 * @param origin `http://host:port` or `https://host:port` of the service
 * @throws Error without a complete answer: refused, reset, cut or timed out
 */
export function sendRequest(origin: string, request: HttpRequest, agent?: http.Agent): Promise<HttpAnswer> {
  const { protocol, hostname, port } = new URL(origin);
  const { method, path, body, cutAfterMs } = request;
  const headers = { ...request.headers, 'content-length': String(body.length) };
  return new Promise((resolve, reject) => {
    const sent = (protocol === 'https:' ? https : http).request({ agent, hostname, port, method, path, headers });
    const timer = setTimeout(() => sent.destroy(new Error(`no answer within ${cutAfterMs} ms`)), cutAfterMs);
    const fail = (error: Error) => {
      clearTimeout(timer);
      reject(error);
    };
    sent.on('error', fail);
    sent.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', fail);
      response.on('end', () => {
        clearTimeout(timer);
        const text = Buffer.concat(chunks).toString();
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
      });
    });
    sent.end(body);
  });
}

export type HttpClient = ReturnType<typeof openHttpClient>;

export function openHttpClient(origin: string) {
  const vendor = new URL(origin).protocol === 'https:' ? https : http;
  const agent = new vendor.Agent({ keepAlive: true });
  return { send: (request: HttpRequest) => sendRequest(origin, request, agent), close: () => agent.destroy() };
}

/** `doubtful`: an attempt may have been stored although it was not acknowledged. */
export type Delivered = { readonly tries: number; readonly doubtful: boolean } & (
  | { readonly kind: 'answered'; readonly answer: HttpAnswer }
  | { readonly kind: 'given up'; readonly reason: string }
);

export interface DeliveryOptions {
  readonly client: HttpClient;
  /** Longer than the service's publish deadline of some seconds, so that its 500 arrives. */
  readonly answerMaxMs?: number;
  /** Must survive a broker that stops for 20 s, or restarts twice. */
  readonly totalMaxMs?: number | undefined;
  readonly pauseFirstMs?: number;
  readonly pauseMaxMs?: number;
  pause?(ms: number): Promise<unknown>;
  onRetry?(reason: string): void;
}

// Delivers by the rules for client libraries (contract, "Brokers"): the same bytes are resent after a 5xx, a 429, a
// timeout or a network fault; every other answer is final.
export function createDelivery(
  options: DeliveryOptions,
): (request: Omit<HttpRequest, 'cutAfterMs'>) => Promise<Delivered> {
  const { client, answerMaxMs = 10_000, totalMaxMs = 240_000, pause = delay } = options;
  const { pauseFirstMs = 100, pauseMaxMs = 3_000 } = options;
  return async (request) => {
    const endMs = performance.now() + totalMaxMs;
    let doubtful = false;
    for (let tries = 1; ; tries++) {
      let reason: string;
      let pauseMs = jitter(Math.min(pauseMaxMs, pauseFirstMs * 2 ** (tries - 1)));
      try {
        const answer = await client.send({ ...request, cutAfterMs: answerMaxMs });
        if (answer.status < 500 && answer.status !== 429) return { kind: 'answered', answer, tries, doubtful };
        reason = `status ${answer.status}`;
        if (answer.status === 429) pauseMs = retryAfterMsOf(answer) ?? pauseMs;
        else doubtful = true;
      } catch (error) {
        doubtful = true;
        reason = error instanceof Error ? error.message : String(error);
      }
      options.onRetry?.(reason);
      if (performance.now() + pauseMs > endMs) return { kind: 'given up', reason, tries, doubtful };
      await pause(pauseMs);
    }
  };
}

/** @returns undefined for invalid JSON */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Jitter over the upper half, so that batches refused together are not resent together. */
const jitter = (ms: number): number => ms / 2 + (Math.random() * ms) / 2;

function retryAfterMsOf(answer: HttpAnswer): number | null {
  const seconds = answer.headers['retry-after'];
  return seconds !== undefined && /^\d{1,4}$/.test(seconds) ? Number(seconds) * 1000 : null;
}

/** An even rate from the first call on; a late sender catches up. @param rate messages per second; 0: no limit */
export function createPace(rate: number) {
  let startMs: number | null = null;
  let promised = 0;
  return {
    /** Resolves when `messages` more messages are due, however slow earlier answers are. */
    due: async (messages: number): Promise<void> => {
      if (rate === 0) return;
      startMs ??= performance.now();
      const waitMs = startMs + (promised / rate) * 1000 - performance.now();
      promised += messages;
      // Timers have a resolution of a millisecond; shorter waits are added to the next.
      if (waitMs >= 1) await delay(waitMs);
    },
  };
}

/**
 * Runs tasks of one lane in sequence and lanes in parallel.
 * @param tasksMax started and unfinished tasks of all lanes: limits memory when the service is slow
 */
export function createLanes(tasksMax: number) {
  const tails = new Map<number, Promise<void>>();
  const waiting: (() => void)[] = [];
  let running = 0;
  let fault: unknown = null;
  const leave = () => {
    running--;
    waiting.shift()?.();
  };
  return {
    get running() {
      return running;
    },
    /** Queues the task as soon as fewer than the maximum are started; `drained` reports its faults. */
    start: async (lane: number, task: () => Promise<void>): Promise<void> => {
      while (running >= tasksMax) await new Promise<void>((resolve) => waiting.push(resolve));
      running++;
      const tail = (tails.get(lane) ?? Promise.resolve()).then(task).catch((error: unknown) => {
        fault ??= error;
      });
      tails.set(lane, tail.then(leave));
    },
    /** Resolves when every task has ended; rejects with the first fault. */
    drained: async (): Promise<void> => {
      await Promise.all(tails.values());
      if (fault !== null) throw fault;
    },
  };
}
