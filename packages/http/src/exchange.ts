import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import { type ErrorCode, invalidField, PublicError, toEnvelope } from '@playline/errors';
import { type Trace, traceOf } from './trace.ts';

export interface ServerContext {
  readonly link: (code: ErrorCode) => string;
  /** During a graceful close each answer ends its connection. */
  draining: boolean;
  /** Open streams, which a graceful close ends. */
  readonly streams: Set<Writable>;
  /** Milliseconds for a caller to read an answer. */
  readonly answerMaxMs: number;
  /** Called for each answer; without an exchange for bytes that are no request. */
  readonly onAnswer: (exchange: Exchange | null, status: number) => void;
  /** Called once for each 5xx. */
  readonly onFault: (exchange: Exchange, error: unknown) => void;
}

/** Names and values in turn, as `writeHead` takes them fastest. */
export type HeaderList = readonly (string | number)[];

const NO_HEADERS: HeaderList = [];
const noHeaders = () => NO_HEADERS;

/** The caller disconnected before the answer. */
export class ClientDisconnected extends Error {
  override readonly name = 'ClientDisconnected';
}

type Body = Buffer | { text: string; encoding: BufferEncoding };

/** One request and its answer. Only the first answer is sent, so a deadline and a result may race. */
export class Exchange implements Trace {
  readonly request: IncomingMessage;
  readonly traceId: string;
  readonly traceparent: string;
  /** Path of the matched route as it is declared, without values. */
  route = 'unmatched';
  readonly startedMs = performance.now();
  /** Headers of every answer, read when it is sent. A route sets this function. */
  lateHeaders: () => HeaderList = noHeaders;
  readonly #response: ServerResponse;
  readonly #frame: ServerContext;
  #headers: HeaderList;
  #answered = false;
  #isLast = false;
  #gone: AbortSignal | null = null;

  constructor(frame: ServerContext, pair: { request: IncomingMessage; response: ServerResponse }, headers: HeaderList) {
    const trace = traceOf(pair.request.headers.traceparent as string | undefined);
    this.request = pair.request;
    this.traceId = trace.traceId;
    this.traceparent = trace.traceparent;
    this.#response = pair.response;
    this.#frame = frame;
    this.#headers = headers;
  }

  get answered(): boolean {
    return this.#answered;
  }

  /**
   * Aborted with `ClientDisconnected` when the caller disconnects or half-closes before the answer has ended. For pages
   * only: other clients half-close after their last request.
   */
  get gone(): AbortSignal {
    this.#gone ??= watchDisconnect(this.request, this.#response);
    return this.#gone;
  }

  /** Lets only pages of one origin read the answer, or no page (null). */
  allowOrigin(origin: string | null): void {
    this.#headers = restrictOrigin(this.#headers, origin);
  }

  answer(status: number, json: string, headers: HeaderList = []): void {
    this.#sendText(status, ['content-type', 'application/json', ...headers], json);
  }

  answerBytes(status: number, json: Buffer, headers: HeaderList = []): void {
    this.#send(status, ['content-type', 'application/json', 'content-length', json.length, ...headers], json);
  }

  /** Sends other text, such as a page; only headers for HEAD. */
  answerText(status: number, content: { type: string; text: string }, headers: HeaderList = []): void {
    this.#sendText(status, ['content-type', content.type, ...headers], content.text);
  }

  /** For 202, 204, 304 and preflights. */
  answerEmpty(status: number, headers: HeaderList = []): void {
    // The length in a 304 is that of the 200: RFC 9110, 8.6.
    const hasLength = status !== 204 && status !== 304;
    this.#send(status, hasLength ? ['content-length', 0, ...headers] : headers);
  }

  /**
   * Starts a stream, which the caller writes and ends. Null when the exchange is answered or the client disconnected.
   * @param options.isFile a file must not appear complete before its end: a shutdown waits for it instead of ending it
   */
  openStream(type: string, headers: HeaderList = [], options: { readonly isFile?: boolean } = {}): Writable | null {
    if (this.#answered) return null;
    this.#answered = true;
    const response = this.#response;
    if (response.destroyed || response.headersSent) return null;
    this.#frame.onAnswer(this, 200);
    const common = ['x-trace-id', this.traceId, ...this.#headers, ...this.lateHeaders()];
    response.writeHead(200, [...common, 'content-type', type, ...headers] as string[]);
    response.flushHeaders();
    if (options.isFile === true) return response;
    if (this.#frame.draining) response.end();
    this.#frame.streams.add(response);
    // Otherwise only the second write would fail.
    const { socket } = this.request;
    const leave = () => void response.destroy();
    if (socket.readableEnded) leave();
    socket.once('end', leave);
    response.once('close', () => {
      socket.off('end', leave);
      this.#frame.streams.delete(response);
    });
    return response;
  }

  /**
   * Sends the error envelope. Errors that are not public go to `onFault` only.
   * @param own status other than that of the code
   */
  fail(error: unknown, headers: HeaderList = [], own?: number): void {
    if (this.#answered || error instanceof ClientDisconnected) return;
    const { body, ...of } = toEnvelope(error, { traceId: this.traceId, link: this.#frame.link });
    const status = own ?? of.status;
    if (status >= 500) this.#frame.onFault(this, error);
    const retryAfterS = error instanceof PublicError ? error.retryAfterS : null;
    const wait = retryAfterS === null ? [] : ['retry-after', retryAfterS];
    this.answer(status, JSON.stringify(body), [...wait, ...headers]);
  }

  /** Also closes the connection, on which no further request can be read. */
  failAndClose(error: unknown, status?: number): void {
    this.fail(error, ['connection', 'close'], status);
  }

  /** Calls back once this answer and earlier ones are written; never if the client disconnected. */
  whenSent(then: () => void): void {
    if (this.#response.writableFinished) then();
    else this.#response.once('finish', then);
  }

  /** The bytes after this request are no request. */
  closeAfterAnswer(): void {
    this.#isLast = true;
  }

  /** ASCII is written in one piece with the headers, which saves 3 % of a small request. */
  #sendText(status: number, headers: HeaderList, text: string): void {
    const length = Buffer.byteLength(text);
    this.#send(status, ['content-length', length, ...headers], {
      text,
      encoding: length === text.length ? 'latin1' : 'utf8',
    });
  }

  #send(status: number, headers: HeaderList, body?: Body): void {
    if (this.#answered) return;
    this.#answered = true;
    if (this.#response.destroyed || this.#response.headersSent) return;
    this.#frame.onAnswer(this, status);
    const list = ['x-trace-id', this.traceId, ...this.#headers, ...this.lateHeaders(), ...headers];
    if (this.#frame.draining || this.#isLast) list.push('connection', 'close');
    this.#response.writeHead(status, list as string[]);
    if (body === undefined) this.#response.end();
    else if (!('text' in body)) this.#response.end(body);
    else this.#response.end(body.text, body.encoding);
    limitReadTime(this.#response, this.#frame.answerMaxMs);
    if (!this.request.complete) discardBody(this.request);
  }
}

function watchDisconnect(request: IncomingMessage, response: ServerResponse): AbortSignal {
  const { socket } = request;
  const controller = new AbortController();
  const leave = () => controller.abort(new ClientDisconnected('the caller disconnected'));
  const close = () => {
    socket.off('end', leave);
    if (!response.writableFinished) leave();
  };
  if (response.destroyed || socket.readableEnded) leave();
  else {
    socket.once('end', leave);
    response.once('close', close);
  }
  return controller.signal;
}

export function notFound(): PublicError {
  return new PublicError('RESOURCE_NOT_FOUND', { message: 'No operation has this path and method.' });
}

/** Chromium's maximum. Contract, "CORS". */
const PREFLIGHT_MAX_AGE_S = 7200;

/** Restricts the headers to pages of one origin, or of none. */
export function restrictOrigin(answer: HeaderList, origin: string | null): HeaderList {
  if (answer.length === 0) return answer;
  const vary = ['vary', 'Origin'];
  if (origin === null) return vary;
  const rest = answer.slice(2);
  // Called again when the key is checked again.
  return [answer[0]!, origin, ...rest, ...(rest.includes('vary') ? [] : vary)];
}

/** Any origin, no credentials: contract, "CORS". */
export function corsHeaders(publishableKeyHeader: string | undefined): Record<'answer' | 'preflight', HeaderList> {
  const keyHeader = publishableKeyHeader === undefined ? [] : [publishableKeyHeader];
  const allowed = ['content-type', 'content-encoding', ...keyHeader, 'traceparent'].join(', ');
  const origin = ['access-control-allow-origin', '*'];
  return {
    answer: [...origin, 'access-control-expose-headers', 'Retry-After, RateLimit, RateLimit-Policy, x-trace-id'],
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
 * Closes the connection of a caller that does not read its answer: Node's time-outs end with the request or restart
 * with each byte. Most answers are written already and need no timer.
 */
function limitReadTime(response: ServerResponse, boundMs: number): void {
  const { socket } = response.req;
  // Without a socket it waits behind earlier answers.
  if (response.socket !== null && socket.writableLength === 0) return;
  const timer = setTimeout(() => socket.destroy(), boundMs).unref();
  response.once('close', () => clearTimeout(timer));
}

/** Closing a connection with unread bytes resets it, which can discard the answer. */
const DISCARD_BYTES_MAX = 8 * 1024 * 1024;
const DISCARD_MAX_MS = 10_000;

/** Reads and discards the rest of an answered body; beyond the bounds the connection is closed. */
function discardBody(request: IncomingMessage): void {
  let bytes = 0;
  const cut = () => request.socket.destroy();
  const timer = setTimeout(cut, DISCARD_MAX_MS).unref();
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > DISCARD_BYTES_MAX) cut();
  });
  request.once('close', () => clearTimeout(timer));
  request.once('end', () => clearTimeout(timer));
  request.on('error', () => {});
  request.resume();
}

export type Query = ReadonlyMap<string, readonly string[]>;

/** RFC 3986: other characters must be percent-encoded. */
const ASCII = /^[\x21-\x7e]*$/;

/**
 * Strict, unlike `URLSearchParams`, which replaces invalid bytes by U+FFFD so that different ids become equal.
 * @throws PublicError VALIDATION_ERROR when it is not percent-encoded UTF-8
 */
export function parseQuery(target: string): Query {
  const mark = target.indexOf('?');
  const text = mark === -1 ? '' : target.slice(mark + 1);
  if (!ASCII.test(text)) throw notDecodable();
  const query = new Map<string, string[]>();
  for (const part of text.split('&')) {
    if (part === '') continue;
    const equals = part.indexOf('=');
    const name = decode(equals === -1 ? part : part.slice(0, equals));
    const value = equals === -1 ? '' : decode(part.slice(equals + 1));
    query.set(name, [...(query.get(name) ?? []), value]);
  }
  return query;
}

/** @throws PublicError VALIDATION_ERROR when it is repeated */
export function singleValueOf(query: Query, name: string): string | undefined {
  const values = query.get(name) ?? [];
  if (values.length > 1) throw invalidField(name, `${name} is given more than once`);
  return values[0];
}

/** As in HTML forms, a plus is a space. */
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
