import http from 'node:http';
import https from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  readonly abortAfterMs: number;
}

export interface HttpResponse {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly text: string;
}

/**
 * Sends one request with Node's HTTP client, which uses little CPU.
 * @param origin `http://host:port` or `https://host:port`
 * @throws Error unless a complete response arrives
 */
export function sendRequest(origin: string, request: HttpRequest, agent?: http.Agent): Promise<HttpResponse> {
  const { protocol, hostname, port } = new URL(origin);
  const { method, path, body, abortAfterMs } = request;
  const headers = { ...request.headers, 'content-length': String(body.length) };
  return new Promise((resolve, reject) => {
    const sent = (protocol === 'https:' ? https : http).request({ agent, hostname, port, method, path, headers });
    const timer = setTimeout(() => sent.destroy(new Error(`no response within ${abortAfterMs} ms`)), abortAfterMs);
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

/** `mayBeStored`: an attempt that was not acknowledged may have been stored. */
export type Delivered = { readonly attempts: number; readonly mayBeStored: boolean } & (
  | { readonly kind: 'complete'; readonly response: HttpResponse }
  | { readonly kind: 'given up'; readonly reason: string }
);

export interface DeliveryOptions {
  readonly client: HttpClient;
  /** Longer than the service's publish deadline, after which it responds with 500. */
  readonly responseMaxMs?: number;
  /** Long enough for a broker to pause for 20 s or to restart twice. */
  readonly totalMaxMs?: number | undefined;
  readonly pauseFirstMs?: number;
  readonly pauseMaxMs?: number;
  pause?(ms: number): Promise<unknown>;
  onRetry?(reason: string): void;
}

// Follows the contract's rules for client libraries: resends the same bytes until a response is final.
export function createDelivery(
  options: DeliveryOptions,
): (request: Omit<HttpRequest, 'abortAfterMs'>) => Promise<Delivered> {
  const { client, responseMaxMs = 10_000, totalMaxMs = 240_000, pause = delay } = options;
  const { pauseFirstMs = 100, pauseMaxMs = 3_000 } = options;
  return async (request) => {
    const endMs = performance.now() + totalMaxMs;
    let mayBeStored = false;
    for (let attempts = 1; ; attempts++) {
      let reason: string;
      let pauseMs = jitter(Math.min(pauseMaxMs, pauseFirstMs * 2 ** (attempts - 1)));
      try {
        const response = await client.send({ ...request, abortAfterMs: responseMaxMs });
        const isFinal = response.status < 500 && response.status !== 429;
        if (isFinal) return { kind: 'complete', response, attempts, mayBeStored };
        reason = `status ${response.status}`;
        if (response.status === 429) pauseMs = retryAfterMsOf(response) ?? pauseMs;
        else mayBeStored = true;
      } catch (error) {
        mayBeStored = true;
        reason = error instanceof Error ? error.message : String(error);
      }
      options.onRetry?.(reason);
      if (performance.now() + pauseMs > endMs) return { kind: 'given up', reason, attempts, mayBeStored };
      await pause(pauseMs);
    }
  };
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns between half and all of `ms`, so that batches that were refused together are resent at different times. */
const jitter = (ms: number): number => ms / 2 + (Math.random() * ms) / 2;

function retryAfterMsOf(response: HttpResponse): number | null {
  const seconds = response.headers['retry-after'];
  return seconds !== undefined && /^\d{1,4}$/.test(seconds) ? Number(seconds) * 1000 : null;
}

/** Limits sending to a constant rate. A late sender catches up. @param rate messages per second; 0 for no limit */
export function createPace(rate: number) {
  let startMs: number | null = null;
  let scheduled = 0;
  return {
    /** Waits until `messages` more messages are due. */
    due: async (messages: number): Promise<void> => {
      if (rate === 0) return;
      startMs ??= performance.now();
      const waitMs = startMs + (scheduled / rate) * 1000 - performance.now();
      scheduled += messages;
      // Timers have a resolution of 1 ms, so shorter waits are added to the next wait.
      if (waitMs >= 1) await delay(waitMs);
    },
  };
}

/**
 * Runs the tasks of each lane in sequence, and different lanes concurrently.
 * @param tasksMax limit on unfinished tasks across all lanes, which bounds memory if the service is slow
 */
export function createLanes(tasksMax: number) {
  const tails = new Map<number, Promise<void>>();
  const waiting: (() => void)[] = [];
  let running = 0;
  let firstError: unknown = null;
  const release = () => {
    running--;
    waiting.shift()?.();
  };
  return {
    get running() {
      return running;
    },
    /** Waits until fewer than `tasksMax` tasks are unfinished, then queues the task. `drained` reports task errors. */
    start: async (lane: number, task: () => Promise<void>): Promise<void> => {
      while (running >= tasksMax) await new Promise<void>((resolve) => waiting.push(resolve));
      running++;
      const tail = (tails.get(lane) ?? Promise.resolve()).then(task).catch((error: unknown) => {
        firstError ??= error;
      });
      tails.set(lane, tail.then(release));
    },
    drained: async (): Promise<void> => {
      await Promise.all(tails.values());
      if (firstError !== null) throw firstError;
    },
  };
}
