import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { Readable } from 'node:stream';

/** PEM texts, and the name in the server's certificate. Default: Node's. */
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

/** Creates a `fetch` for one store, with its certificate authority and login. With TLS options it follows no redirects. */
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
      // A new connection each time: requests are rare, and the store may close an idle one.
      const sent = request(url, {
        ...tls,
        method,
        headers,
        agent: false,
        ...(signal ? { signal } : {}),
      });
      sent.once('error', reject);
      sent.once('response', (response) => resolve(toResponse(response)));
      sent.end(body);
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
