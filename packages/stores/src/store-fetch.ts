import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { Readable } from 'node:stream';

/** How a TLS connection is made: PEM texts, and the name that the certificate must bear; absent is Node's default. */
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

/** As the global `fetch`, as far as stores are asked with it. */
export type StoreFetch = (url: string | URL, init?: StoreRequest) => Promise<Response>;

/** Statuses whose answers have no body: `Response` refuses one. */
const BODILESS = new Set([204, 304]);

/**
 * Creates a `fetch` for one store: it trusts the store's own authority, which the global one cannot, and logs in by
 * basic authentication where there is a login. Redirects are not followed with TLS options: stores send none.
 */
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
      // A new connection each time: requests are rare, and the store might close an idle one.
      const asked = request(url, {
        ...tls,
        method,
        headers,
        agent: false,
        ...(signal ? { signal } : {}),
      });
      asked.once('error', reject);
      asked.once('response', (answer) => resolve(toResponse(answer)));
      asked.end(body);
    });
  };
}

function toResponse(answer: IncomingMessage): Response {
  const status = answer.statusCode ?? 0;
  const headers = new Headers();
  for (const [name, values] of Object.entries(answer.headersDistinct))
    for (const value of values ?? []) headers.append(name, value);
  if (BODILESS.has(status)) answer.resume();
  const body = BODILESS.has(status) ? null : (Readable.toWeb(answer) as ReadableStream<Uint8Array>);
  return new Response(body, { status, headers });
}
