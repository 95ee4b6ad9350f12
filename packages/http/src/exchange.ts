import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import { type ErrorCode, invalidField, PublicError, toEnvelope } from '@playline/errors';
import { type Trace, traceOf } from './trace.ts';

/** What all exchanges of one server have in common. */
export interface ServerContext {
  /** Address of the page that explains a code. */
  readonly link: (code: ErrorCode) => string;
  /** True from the start of a graceful close: each answer then ends its connection. */
  draining: boolean;
  /** Answers without an end that are open: a graceful close ends them. */
  readonly streams: Set<Writable>;
  /** How long a caller may take to read an answer, in milliseconds. */
  readonly answerMaxMs: number;
  /** Called for each answer, envelope or not; without an exchange when what came was no request. */
  readonly onAnswer: (exchange: Exchange | null, status: number) => void;
  /** Called once for each 5xx, with what really happened. */
  readonly onFault: (exchange: Exchange, error: unknown) => void;
}

/** Header names and values in turn, as `writeHead` takes them fastest. */
export type HeaderList = readonly (string | number)[];

const NO_HEADERS: HeaderList = [];
const noHeaders = () => NO_HEADERS;

/** The caller has gone: nobody will read the answer. This is no fault of the service. */
export class ClientDisconnected extends Error {
  override readonly name = 'ClientGone';
}

type Body = Buffer | { text: string; encoding: BufferEncoding };

/**
 * One request and its answer. Only the first answer is sent and later ones are ignored, so a deadline and a result may
 * race.
 */
export class Exchange implements Trace {
  readonly request: IncomingMessage;
  readonly traceId: string;
  readonly traceparent: string;
  /** Path of the matched route as it is declared, without values. */
  route = 'unmatched';
  readonly startedMs = performance.now();
  /** Headers of the answer, also of an envelope. A route sets this function; it is called when the answer is sent. */
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
   * Aborted with `ClientGone` when the caller leaves before the answer has ended, or ends its half of the connection.
   * For pages only: a browser ends its half only when it leaves, but other clients do so after their last request.
   * Watched from when it is first read.
   */
  get gone(): AbortSignal {
    this.#gone ??= watchDisconnect(this.request, this.#response);
    return this.#gone;
  }

  /** Lets only pages of one origin read the answer, or no page (null). */
  allowOrigin(origin: string | null): void {
    this.#headers = restrictOrigin(this.#headers, origin);
  }

  /** Sends JSON text. */
  answer(status: number, json: string, headers: HeaderList = []): void {
    this.#sendText(status, ['content-type', 'application/json', ...headers], json);
  }

  /** Sends JSON that is bytes already. */
  answerBytes(status: number, json: Buffer, headers: HeaderList = []): void {
    this.#send(status, ['content-type', 'application/json', 'content-length', json.length, ...headers], json);
  }

  /** Sends text of another type, such as a page. For a HEAD request it sends the headers only. */
  answerText(status: number, content: { type: string; text: string }, headers: HeaderList = []): void {
    this.#sendText(status, ['content-type', content.type, ...headers], content.text);
  }

  /** Sends no body: for 202, 204 and 304, and for a CORS preflight. */
  answerEmpty(status: number, headers: HeaderList = []): void {
    // The length in a 304 would be that of the 200 it stands for: RFC 9110, 8.6.
    const hasLength = status !== 204 && status !== 304;
    this.#send(status, hasLength ? ['content-length', 0, ...headers] : headers);
  }

  /**
   * Starts an answer that stays open, such as a stream of events, which the caller writes and ends. A shutdown ends it,
   * since it would otherwise hold the process until its bound. Null when the exchange was answered already, or the
   * client has gone.
   * @param type its content type
   * @param options.isFile the answer is a file, which must not look complete before its end. A shutdown waits for it,
   * and breaks the connection if it lasts too long
   */
  openStream(type: string, headers: HeaderList = [], options: { readonly isFile?: boolean } = {}): Writable | null {
    if (this.#answered) return null;
    this.#answered = true;
    const response = this.#response;
    if (response.destroyed || response.headersSent) return null;
    this.#frame.onAnswer(this, 200);
    const list = [
      'x-trace-id',
      this.traceId,
      ...this.#headers,
      ...this.lateHeaders(),
      'content-type',
      type,
      ...headers,
    ];
    response.writeHead(200, list as string[]);
    response.flushHeaders();
    if (options.isFile === true) return response;
    if (this.#frame.draining) response.end();
    this.#frame.streams.add(response);
    // A client that has ended its half is gone. Otherwise only the second write would fail and show it.
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
   * Sends the error envelope for any fault. A fault that is not public stays inside, and is reported to `onFault`.
   * @param own status if it is not the one of the fault's code
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

  /** Like `fail`, and closes the connection: whatever follows on it could not be read as a request. */
  failAndClose(error: unknown, status?: number): void {
    this.fail(error, ['connection', 'close'], status);
  }

  /**
   * Calls back once this answer, and those of earlier requests, are handed to the kernel. Never calls back if the
   * client has gone.
   */
  whenSent(then: () => void): void {
    if (this.#response.writableFinished) then();
    else this.#response.once('finish', then);
  }

  /** The data after this request is no request. The answer stays as it is, and the connection is closed after it. */
  closeAfterAnswer(): void {
    this.#isLast = true;
  }

  /**
   * Pure ASCII, as most answers are, is written in one piece with its headers: that saves 3 % of a small request's
   * work.
   */
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
    // The client has gone, so there is no answer, and none is counted.
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
  const leave = () => controller.abort(new ClientDisconnected('the caller has left'));
  const close = () => {
    socket.off('end', leave);
    if (!response.writableFinished) leave();
  };
  if (response.destroyed || socket.readableEnded) leave();
  else {
    if (socket.readableEnded) leave();
    socket.once('end', leave);
    response.once('close', close);
  }
  return controller.signal;
}

/** The answer to a request for something that this service does not have. */
export function notFound(): PublicError {
  return new PublicError('RESOURCE_NOT_FOUND', { message: 'There is no such path, or not with this method.' });
}

/** Seconds a browser may keep a preflight's answer; Chromium's own cap. Contract, "CORS". */
const PREFLIGHT_MAX_AGE_S = 7200;

/** Cross-origin headers of operations with a publishable key. Operations with a secret key have none. */
interface CorsHeaders {
  readonly answer: HeaderList;
  readonly preflight: HeaderList;
}

/**
 * Limits these headers to pages of one origin, or of none. If there are no headers, no page may call the operation, and
 * it stays so. Caches must keep the answer for that origin only.
 */
export function restrictOrigin(answer: HeaderList, origin: string | null): HeaderList {
  if (answer.length === 0) return answer;
  const vary = ['vary', 'Origin'];
  if (origin === null) return vary;
  const rest = answer.slice(2);
  // Called again when a key is checked again after the body.
  return [answer[0]!, origin, ...rest, ...(rest.includes('vary') ? [] : vary)];
}

/** Any origin, no credentials: contract, "CORS". */
export function corsHeaders(publishableKeyHeader: string | undefined): CorsHeaders {
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

/** The same time that a whole request may take to arrive. */
export const ANSWER_MAX_MS = 30_000;

/**
 * Closes the connection of a caller that does not read its answer. Node has no such bound: its request timeouts end
 * with the request, and its socket timeout restarts with every byte that the caller reads. Most answers are already in
 * the kernel's hands by now, and need no timer.
 * @param response just ended
 */
function limitReadTime(response: ServerResponse, boundMs: number): void {
  const { socket } = response.req;
  // Without a socket it waits behind the answers to earlier requests on this connection.
  if (response.socket !== null && socket.writableLength === 0) return;
  const timer = setTimeout(() => socket.destroy(), boundMs).unref();
  response.once('close', () => clearTimeout(timer));
}

/**
 * Callers send their whole request before they read the answer. Closing a connection with unread bytes resets it, which
 * can discard the answer. Eight times the largest batch covers what honest callers send by mistake.
 */
const DISCARD_BYTES_MAX = 8 * 1024 * 1024;
/** As long as a whole body may take. */
const DISCARD_MAX_MS = 10_000;

/**
 * Reads and discards the rest of a body that is answered already, within bounds; beyond them the connection is closed.
 */
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

/** The values of each parameter, in order. */
export type Query = ReadonlyMap<string, readonly string[]>;

/** RFC 3986: other characters must be percent-encoded. Raw bytes could be read as another id than the caller meant. */
const ASCII = /^[\x21-\x7e]*$/;

/**
 * Reads the query of a request target. `URLSearchParams` is not used: it replaces invalid bytes by U+FFFD, so that
 * different ids would become the same.
 * @throws PublicError VALIDATION_ERROR when it is not valid percent-encoded UTF-8
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

/**
 * The value of a parameter; undefined when it is absent.
 * @throws PublicError VALIDATION_ERROR when it is given more than once, since it is unclear which one counts
 */
export function singleValueOf(query: Query, name: string): string | undefined {
  const values = query.get(name) ?? [];
  if (values.length > 1) throw invalidField(name, `${name} is given more than once`);
  return values[0];
}

/** As HTML forms are sent: a plus is a space. */
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
