import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { Readable } from 'node:stream';

/** PEM contents, and the expected name in the server's certificate. Node's defaults apply to missing options. */
export interface TlsOptions {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly servername?: string;
}

export interface StoreRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal;
}

export type StoreFetch = (url: string | URL, init?: StoreRequest) => Promise<Response>;

const BODILESS = new Set([204, 304]);

/** Creates a `fetch` for one store, with its certificate authority and login. With TLS options, redirects fail. */
export function createStoreFetch(options: {
  tls?: TlsOptions | undefined;
  login?: { user: string; password: string } | undefined;
}): StoreFetch {
  const { tls, login } = options;
  const authorization =
    login === undefined ? undefined : `Basic ${Buffer.from(`${login.user}:${login.password}`).toString('base64')}`;
  return (url, init = {}) => {
    const headers = { ...init.headers, ...(authorization === undefined ? {} : { authorization }) };
    if (tls === undefined) return fetch(url, { ...init, headers });
    return new Promise((resolve, reject) => {
      const { method = 'GET', signal, body } = init;
      // Uses a new connection for each request, because requests are rare and the store may close idle connections.
      const sent = request(url, { ...tls, method, headers, agent: false, signal });
      sent.once('error', reject);
      sent.once('response', (response) => resolve(toResponse(response)));
      sent.end(body);
    });
  };
}

function toResponse(message: IncomingMessage): Response {
  const status = message.statusCode ?? 0;
  const headers = new Headers();
  for (const [name, values] of Object.entries(message.headersDistinct))
    for (const value of values ?? []) headers.append(name, value);
  if (BODILESS.has(status)) message.resume();
  const body = BODILESS.has(status) ? null : (Readable.toWeb(message) as ReadableStream<Uint8Array>);
  return new Response(body, { status, headers });
}

/**
 * Waits for work, up to a time limit. Afterwards the work continues, but its result is ignored.
 * @param onTimeout called after the time limit; returns a fallback or throws
 */
export async function waitAtMost<T, L>(limitMs: number, work: Promise<T>, onTimeout: () => L): Promise<T | L> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<void>((resolve) => {
    // The timer must not keep the process running.
    timer = setTimeout(resolve, limitMs).unref();
  }).then(onTimeout);
  try {
    return await Promise.race([work, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

/** Waits for a store's response, up to a time limit. @throws Error with the time limit */
export function answerWithin<T>(limitMs: number, call: Promise<T>): Promise<T> {
  return waitAtMost(limitMs, call, (): never => {
    throw new Error(`no response within ${limitMs} ms`);
  });
}

/** Waits for a time, or until the signal is aborted. Never rejects. */
export function pause(ms: number, stop?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      stop?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, Math.max(0, ms));
    stop?.addEventListener('abort', end);
    if (stop?.aborted === true) end();
  });
}

/** Waits for a time. @throws the abort reason if the signal is aborted */
export async function pauseOrThrow(ms: number, stop?: AbortSignal): Promise<void> {
  await pause(ms, stop);
  stop?.throwIfAborted();
}
