import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import { type ErrorCode, PublicError, toEnvelope } from '@playline/errors';
import { boundReading } from './bound-reading.ts';
import { narrowOrigin } from './cors.ts';
import { readOn } from './read-on.ts';
import { type Trace, traceOf } from './trace.ts';

/** What all exchanges of one server have in common. */
export interface Frame {
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

/** The caller has gone: nobody reads an answer, and nothing failed here. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone';
}

type Body = Buffer | { text: string; encoding: BufferEncoding };

/** One request and its answer. The first answer counts; later ones are ignored, so a deadline and a result may race. */
export class Exchange implements Trace {
  readonly request: IncomingMessage;
  readonly traceId: string;
  readonly traceparent: string;
  /** Headers of whichever answer it comes to, envelopes too; asked when the answer goes out. A route sets it. */
  lateHeaders: () => HeaderList = noHeaders;
  readonly #response: ServerResponse;
  readonly #frame: Frame;
  #headers: HeaderList;
  #answered = false;
  #isLast = false;
  #gone: AbortSignal | null = null;

  constructor(frame: Frame, pair: { request: IncomingMessage; response: ServerResponse }, headers: HeaderList) {
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
   * Aborted with `ClientGone` when the caller has left in front of the end of the answer, or has ended its half of the
   * connection: for pages, since browsers do that only when they leave. Watched from the first time it is asked for.
   */
  get gone(): AbortSignal {
    this.#gone ??= watchGone(this.request, this.#response);
    return this.#gone;
  }

  /** Says whose pages may read the answer, in the place of anybody's: those of one origin, or nobody's (null). */
  allowOrigin(origin: string | null): void {
    this.#headers = narrowOrigin(this.#headers, origin);
  }

  /** Sends JSON text. */
  answer(status: number, json: string, headers: HeaderList = []): void {
    this.#sendText(status, ['content-type', 'application/json', ...headers], json);
  }

  /** Sends JSON that is bytes already. */
  answerBytes(status: number, json: Buffer, headers: HeaderList = []): void {
    this.#send(status, ['content-type', 'application/json', 'content-length', json.length, ...headers], json);
  }

  /** Sends text of another type, such as a page; to HEAD its headers alone. */
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
   * Begins an answer without an end, such as events for a page, which the caller writes and ends. A drain ends it: such
   * an answer would hold the process until its bound. Null when it was answered, or nobody is there any more.
   * @param type its content type
   * @param options.isFile it has an end, in front of which nobody may take it for whole: a drain waits for it, and breaks it off
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
    // A reader that has ended its side is gone; else only writing would tell, of which the second fails.
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
   * Sends the error envelope of any fault; what is not public stays inside and is reported to `onFault`.
   * @param own status where it is not the one of the fault's code
   */
  fail(error: unknown, headers: HeaderList = [], own?: number): void {
    if (this.#answered || error instanceof ClientGone) return;
    const { body, ...of } = toEnvelope(error, { traceId: this.traceId, link: this.#frame.link });
    const status = own ?? of.status;
    if (status >= 500) this.#frame.onFault(this, error);
    const retryAfterS = error instanceof PublicError ? error.retryAfterS : null;
    const wait = retryAfterS === null ? [] : ['retry-after', retryAfterS];
    this.answer(status, JSON.stringify(body), [...wait, ...headers]);
  }

  /** As `fail`, and ends the connection: what comes next on it could not be read as a request. */
  failAndClose(error: unknown, status?: number): void {
    this.fail(error, ['connection', 'close'], status);
  }

  /** Calls back once the answer is with the kernel, and so are those of earlier requests; never, when nobody is there. */
  whenSent(then: () => void): void {
    if (this.#response.writableFinished) then();
    else this.#response.once('finish', then);
  }

  /** What follows this request on its connection is none: its own answer stands, and ends the connection. */
  endConnection(): void {
    this.#isLast = true;
  }

  /** Text of ASCII alone, as most answers are, is written as it stands, head and all: 3 % of a small request's work. */
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
    // Nobody is there to read it: it is no answer, and none is counted.
    if (this.#response.destroyed || this.#response.headersSent) return;
    this.#frame.onAnswer(this, status);
    const list = ['x-trace-id', this.traceId, ...this.#headers, ...this.lateHeaders(), ...headers];
    if (this.#frame.draining || this.#isLast) list.push('connection', 'close');
    this.#response.writeHead(status, list as string[]);
    if (body === undefined) this.#response.end();
    else if (!('text' in body)) this.#response.end(body);
    else this.#response.end(body.text, body.encoding);
    boundReading(this.#response, this.#frame.answerMaxMs);
    if (!this.request.complete) readOn(this.request);
  }
}

function watchGone(request: IncomingMessage, response: ServerResponse): AbortSignal {
  const { socket } = request;
  const controller = new AbortController();
  const leave = () => controller.abort(new ClientGone('the caller has left'));
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

/** A request that names nothing this service has. */
export function notFound(): PublicError {
  return new PublicError('RESOURCE_NOT_FOUND', { message: 'There is no such path, or not with this method.' });
}
