import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import { type ErrorCode, invalidField, PublicError, toEnvelope } from '@playline/errors';
import type { TraceSpan, Tracing } from '@playline/runtime';
import { type Trace, traceOf } from './trace.ts';

export interface ServerContext {
  readonly link: (code: ErrorCode) => string;
  /** True during a graceful shutdown, when each response closes its connection. */
  draining: boolean;
  /** Open streams, which a graceful shutdown ends. */
  readonly streams: Set<Writable>;
  /** How long a caller may take to read a response. */
  readonly answerMaxMs: number;
  /** Null if traces are not exported. */
  readonly tracing: Pick<Tracing, 'sample' | 'start'> | null;
  /** Called for each response. The exchange is null if the received bytes were not a request. */
  readonly onAnswer: (exchange: Exchange | null, status: number) => void;
  /** Called once for each error envelope. */
  readonly onFailure: (exchange: Exchange, error: unknown) => void;
}

/** Alternating names and values, the fastest form for `writeHead`. */
export type HeaderList = readonly (string | number)[];

const NO_HEADERS: HeaderList = [];
const noHeaders = () => NO_HEADERS;

/** The caller disconnected before the response was sent. */
export class ClientDisconnected extends Error {
  override readonly name = 'ClientDisconnected';
}

/** Renamed when the route is known. */
const REQUEST_SPAN = { name: 'request', kind: 'server' } as const;

type Body = Buffer | { text: string; encoding: BufferEncoding };

/** A request and its response. Only the first response is sent, so a deadline and a result may race. */
export class Exchange implements Trace {
  readonly request: IncomingMessage;
  readonly traceId: string;
  /** The caller's or a new one, or that of the request's span if its trace is recorded. */
  readonly traceparent: string;
  /** Null if the trace is not recorded. */
  readonly span: TraceSpan | null;
  /** The declared path of the matched route, without parameter values. */
  route = 'unmatched';
  readonly startedMs = performance.now();
  /** Returns headers that are added when a response is sent. Set by the route. */
  lateHeaders: () => HeaderList = noHeaders;
  readonly #response: ServerResponse;
  readonly #context: ServerContext;
  #headers: HeaderList;
  #answered = false;
  #closesConnection = false;
  #disconnected: AbortSignal | null = null;

  constructor(context: ServerContext, io: { request: IncomingMessage; response: ServerResponse }, headers: HeaderList) {
    const trace = traceOf(io.request.headers.traceparent as string | undefined);
    this.request = io.request;
    const { tracing } = context;
    this.span = tracing?.sample() === true ? tracing.start(REQUEST_SPAN, trace.traceparent) : null;
    this.traceId = trace.traceId;
    this.traceparent = this.span === null ? trace.traceparent : this.span.traceparent;
    this.#response = io.response;
    this.#context = context;
    this.#headers = headers;
  }

  get answered(): boolean {
    return this.#answered;
  }

  /**
   * Aborted with `ClientDisconnected` if the caller disconnects or half-closes before the response ends. For web pages
   * only, because other clients half-close after their last request.
   */
  get disconnectSignal(): AbortSignal {
    this.#disconnected ??= watchDisconnect(this.request, this.#response);
    return this.#disconnected;
  }

  /** Allows only pages from one origin to read the response, or no page (null). */
  allowOrigin(origin: string | null): void {
    this.#headers = restrictOrigin(this.#headers, origin);
  }

  answer(status: number, json: string, headers: HeaderList = []): void {
    this.#sendText(status, ['content-type', 'application/json', ...headers], json);
  }

  answerBytes(status: number, bytes: Buffer, headers: HeaderList = [], type = 'application/json'): void {
    this.#send(status, ['content-type', type, 'content-length', bytes.length, ...headers], bytes);
  }

  /** Sends a response with another content type, such as HTML. HEAD gets only the headers. */
  answerText(status: number, content: { type: string; text: string }, headers: HeaderList = []): void {
    this.#sendText(status, ['content-type', content.type, ...headers], content.text);
  }

  /** Sends a response without a body, such as 202, 204, 304 or a preflight response. */
  answerEmpty(status: number, headers: HeaderList = []): void {
    // In a 304, content-length would be the length of the 200 response (RFC 9110, 8.6).
    const hasLength = status !== 204 && status !== 304;
    this.#send(status, hasLength ? ['content-length', 0, ...headers] : headers);
  }

  /**
   * Starts a response stream, which the caller writes and ends. Returns null after a response or a disconnect.
   * @param options.isFile true if a truncated body must not appear complete: a shutdown then waits for the stream
   */
  openStream(type: string, headers: HeaderList = [], options: { readonly isFile?: boolean } = {}): Writable | null {
    if (this.#answered) return null;
    this.#answered = true;
    const response = this.#response;
    if (this.span !== null) this.#endSpan(this.span, 200);
    if (response.destroyed || response.headersSent) return null;
    this.#context.onAnswer(this, 200);
    const common = ['x-trace-id', this.traceId, ...this.#headers, ...this.lateHeaders()];
    response.writeHead(200, [...common, 'content-type', type, ...headers] as string[]);
    response.flushHeaders();
    if (options.isFile === true) return response;
    if (this.#context.draining) response.end();
    this.#context.streams.add(response);
    // Otherwise only the second write after a disconnect would fail.
    const { socket } = this.request;
    const disconnect = () => void response.destroy();
    if (socket.readableEnded) disconnect();
    socket.once('end', disconnect);
    response.once('close', () => {
      socket.off('end', disconnect);
      this.#context.streams.delete(response);
    });
    return response;
  }

  /**
   * Sends the error envelope. Errors that are not public are passed only to `onFailure`.
   * @param statusOverride replaces the error code's status
   */
  fail(error: unknown, headers: HeaderList = [], statusOverride?: number): void {
    if (error instanceof ClientDisconnected) this.span?.end(error);
    if (this.#answered || error instanceof ClientDisconnected) return;
    const { body, status: defaultStatus } = toEnvelope(error, { traceId: this.traceId, link: this.#context.link });
    const status = statusOverride ?? defaultStatus;
    this.#context.onFailure(this, error);
    const retryAfterS = error instanceof PublicError ? error.retryAfterS : null;
    const wait = retryAfterS === null ? [] : ['retry-after', retryAfterS];
    this.answer(status, JSON.stringify(body), [...wait, ...headers]);
  }

  /** Sends the error envelope and closes the connection, because no further request can be read from it. */
  failAndClose(error: unknown, status?: number): void {
    this.fail(error, ['connection', 'close'], status);
  }

  /** Calls `then` after this and all earlier responses are written; never if the client disconnects. */
  whenSent(then: () => void): void {
    if (this.#response.writableFinished) then();
    else this.#response.once('finish', then);
  }

  /** Closes the connection after the response, because the following bytes are not a request. */
  closeAfterAnswer(): void {
    this.#closesConnection = true;
  }

  /** Sends ASCII text in the same write as the headers, which saves 3 % of the time of a small request. */
  #sendText(status: number, headers: HeaderList, text: string): void {
    const length = Buffer.byteLength(text);
    this.#send(status, ['content-length', length, ...headers], {
      text,
      encoding: length === text.length ? 'latin1' : 'utf8',
    });
  }

  #endSpan(span: TraceSpan, status: number): void {
    const { method = '' } = this.request;
    span.rename(`${method} ${this.route}`);
    span.set({ 'http.request.method': method, 'http.route': this.route, 'http.response.status_code': status });
    span.end(status >= 500 ? new Error('the request failed') : undefined);
  }

  #send(status: number, headers: HeaderList, body?: Body): void {
    if (this.#answered) return;
    this.#answered = true;
    if (this.span !== null) this.#endSpan(this.span, status);
    if (this.#response.destroyed || this.#response.headersSent) return;
    this.#context.onAnswer(this, status);
    const list = ['x-trace-id', this.traceId, ...this.#headers, ...this.lateHeaders(), ...headers];
    if (this.#context.draining || this.#closesConnection) list.push('connection', 'close');
    this.#response.writeHead(status, list as string[]);
    if (body === undefined) this.#response.end();
    else if (!('text' in body)) this.#response.end(body);
    else this.#response.end(body.text, body.encoding);
    limitReadTime(this.#response, this.#context.answerMaxMs);
    if (!this.request.complete) discardBody(this.request);
  }
}

function watchDisconnect(request: IncomingMessage, response: ServerResponse): AbortSignal {
  const { socket } = request;
  const controller = new AbortController();
  const disconnect = () => controller.abort(new ClientDisconnected('the caller disconnected'));
  const close = () => {
    socket.off('end', disconnect);
    if (!response.writableFinished) disconnect();
  };
  if (response.destroyed || socket.readableEnded) disconnect();
  else {
    socket.once('end', disconnect);
    response.once('close', close);
  }
  return controller.signal;
}

export function notFound(): PublicError {
  return new PublicError('RESOURCE_NOT_FOUND', { message: 'No operation has this path and method.' });
}

/** Chromium's maximum (contract, "CORS"). */
const PREFLIGHT_MAX_AGE_S = 7200;

/** Restricts the CORS headers to pages from one origin, or to none. */
export function restrictOrigin(headers: HeaderList, origin: string | null): HeaderList {
  if (headers.length === 0) return headers;
  const vary = ['vary', 'Origin'];
  if (origin === null) return vary;
  const rest = headers.slice(2);
  // Idempotent, because a key may be checked twice.
  return [headers[0]!, origin, ...rest, ...(rest.includes('vary') ? [] : vary)];
}

/** Allows any origin without credentials (contract, "CORS"). */
export function corsHeaders(publishableKeyHeader: string | undefined): Record<'response' | 'preflight', HeaderList> {
  const keyHeader = publishableKeyHeader === undefined ? [] : [publishableKeyHeader];
  const allowed = ['content-type', 'content-encoding', ...keyHeader, 'traceparent'].join(', ');
  const origin = ['access-control-allow-origin', '*'];
  return {
    response: [...origin, 'access-control-expose-headers', 'Retry-After, RateLimit, RateLimit-Policy, x-trace-id'],
    preflight: [
      'access-control-allow-headers',
      allowed,
      'access-control-allow-methods',
      'POST, GET, PUT',
      'access-control-max-age',
      PREFLIGHT_MAX_AGE_S,
    ],
  };
}

export const ANSWER_MAX_MS = 30_000;

/**
 * Closes the connection if the caller does not read its response. Node's timeouts end with the request or restart with
 * every byte. Most responses are already written at this point and need no timer.
 */
function limitReadTime(response: ServerResponse, limitMs: number): void {
  const { socket } = response.req;
  // Without a socket, the response waits for earlier responses.
  if (response.socket !== null && socket.writableLength === 0) return;
  const timer = setTimeout(() => socket.destroy(), limitMs).unref();
  response.once('close', () => clearTimeout(timer));
}

/** Closing a connection with unread bytes resets it, which can discard the response. */
const DISCARD_BYTES_MAX = 8 * 1024 * 1024;
const DISCARD_MAX_MS = 10_000;

/** Reads and discards the rest of a body after the response. Above the limits the connection is closed. */
function discardBody(request: IncomingMessage): void {
  let bytes = 0;
  const closeConnection = () => request.socket.destroy();
  const timer = setTimeout(closeConnection, DISCARD_MAX_MS).unref();
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > DISCARD_BYTES_MAX) closeConnection();
  });
  request.once('close', () => clearTimeout(timer));
  request.once('end', () => clearTimeout(timer));
  request.on('error', () => {});
  request.resume();
}

export type Query = ReadonlyMap<string, readonly string[]>;

/** Other characters must be percent-encoded (RFC 3986). */
const ASCII = /^[\x21-\x7e]*$/;

/**
 * Parses a query string strictly. `URLSearchParams` replaces invalid bytes with U+FFFD, which can make different ids
 * equal.
 * @throws PublicError VALIDATION_ERROR if the query is not percent-encoded UTF-8
 */
export function parseQuery(target: string): Query {
  const queryStart = target.indexOf('?');
  const text = queryStart === -1 ? '' : target.slice(queryStart + 1);
  if (!ASCII.test(text)) throw notDecodable();
  const query = new Map<string, string[]>();
  for (const parameter of text.split('&')) {
    if (parameter === '') continue;
    const equals = parameter.indexOf('=');
    const name = decode(equals === -1 ? parameter : parameter.slice(0, equals));
    const value = equals === -1 ? '' : decode(parameter.slice(equals + 1));
    query.set(name, [...(query.get(name) ?? []), value]);
  }
  return query;
}

/** @throws PublicError VALIDATION_ERROR if the parameter is repeated */
export function singleValueOf(query: Query, name: string): string | undefined {
  const values = query.get(name) ?? [];
  if (values.length > 1) throw invalidField(name, `${name} appears more than once`);
  return values[0];
}

/** Decodes percent-encoding, and plus signs as spaces like in HTML forms. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch (cause) {
    throw notDecodable(cause);
  }
}

function notDecodable(cause?: unknown): PublicError {
  return new PublicError('VALIDATION_ERROR', { message: 'The query is not valid percent-encoded UTF-8.', cause });
}
