import { once } from 'node:events';
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { PublicError, toEnvelope } from '@playline/errors';
import type { Closable, Metrics } from '@playline/runtime';
import { waitAtMost } from '@playline/stores';
import type { HttpApp } from './app.ts';
import { notFound } from './exchange.ts';
import { createNodeServer } from './node-server.ts';
import { traceOf } from './trace.ts';

export interface HttpServerOptions {
  app: HttpApp;
  host: string;
  /** 0 selects a free port. */
  port: number;
  /** Maximum milliseconds for the headers; lower in tests. */
  headersMaxMs?: number;
  /** Lower in tests. */
  connectionsMax?: number;
}

export type HttpServerState = 'open' | 'draining' | 'closed';

export interface HttpServer extends Closable {
  readonly port: number;
  readonly state: HttpServerState;
  /** Stops accepting, closes idle connections, completes requests in flight with `connection: close`, then resolves. */
  close(): Promise<void>;
}

/** An idle connection uses some 10 KB. */
const CONNECTIONS_MAX = 4096;
/** Load balancers keep idle connections for 60 s. */
const KEEP_ALIVE_MS = 65_000;
const HEADERS_MAX_MS = 10_000;
/** For routes that do not read the body; reading a body has a shorter bound. */
const REQUEST_MAX_MS = 30_000;
/** How often Node checks `HEADERS_MAX_MS` and `REQUEST_MAX_MS`. */
const CHECK_INTERVAL_MS = 2000;
/** A body (10 s) and a publish deadline (2.5 s); the rest of the 25 s shutdown is for the producer. */
const DRAIN_MAX_MS = 13_000;
/** During a shutdown idle connections close within this time. */
const IDLE_SWEEP_MS = 50;

/** Missing in Node's types. By default Node closes a half-closed connection, and the response would be lost. */
type HalfOpenServer = Server & { httpAllowHalfOpen?: boolean };

/** @throws Error when the port is in use */
export async function openHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const { app, host, port, headersMaxMs = HEADERS_MAX_MS } = options;
  const created = createNodeServer({
    listener: app.listener,
    connectionsMax: options.connectionsMax ?? CONNECTIONS_MAX,
    onBroken: (error, socket) => answerBrokenRequest(app, error, socket),
    keepAliveTimeout: KEEP_ALIVE_MS,
    headersTimeout: headersMaxMs,
    requestTimeout: REQUEST_MAX_MS,
    connectionsCheckingInterval: Math.min(CHECK_INTERVAL_MS, headersMaxMs),
    maxHeaderSize: HEADER_BYTES_MAX,
    requireHostHeader: false,
  });
  const { connections } = created;
  const server: HalfOpenServer = created.server;
  server.maxHeadersCount = HEADER_LINES_MAX;
  server.httpAllowHalfOpen = true;
  // Expectations other than 100-continue are ignored (RFC 9110, 10.1.1): clients would drop a batch on a 417.
  server.on('checkExpectation', app.listener);
  server.on('connect', (_request, socket) => answerRaw(app, socket as Socket, { fault: notFound() }));
  await listen(server, host, port);

  let state: HttpServerState = 'open';
  let closing: Promise<void> | null = null;
  const drain = async () => {
    state = 'draining';
    app.context.draining = true;
    for (const stream of app.context.streams) stream.end();
    // Node does not consider connections without a request idle, and would wait for them.
    for (const socket of connections) if (socket.bytesRead === 0) socket.destroy();
    await closeWithin(server, DRAIN_MAX_MS);
    state = 'closed';
  };
  return {
    port: (server.address() as AddressInfo).port,
    get state() {
      return state;
    },
    close: () => {
      closing ??= drain();
      return closing;
    },
  };
}

async function listen(server: Server, host: string, port: number): Promise<void> {
  server.listen(port, host);
  await once(server, 'listening');
}

function closeWithin(server: Server, boundMs: number): Promise<void> {
  return new Promise((resolve) => {
    const sweep = setInterval(() => server.closeIdleConnections(), IDLE_SWEEP_MS);
    const bound = setTimeout(() => server.closeAllConnections(), boundMs);
    server.close(() => {
      clearInterval(sweep);
      clearTimeout(bound);
      resolve();
    });
  });
}

/** Node's default, repeated for the error message. */
const HEADER_BYTES_MAX = 16 * 1024;
/** Otherwise 16 KiB could become thousands of header objects. */
const HEADER_LINES_MAX = 1000;
const LINGER_MS = 1000;
const HEADERS_TOO_LARGE = 431;

/** Node's code for a headers or request timeout. */
const LATE = 'ERR_HTTP_REQUEST_TIMEOUT';

interface Refusal {
  readonly fault: PublicError;
  readonly status?: number;
}

/** Sockets with a reported fault: Node reports every chunk after the first malformed one. */
const reportedFault = new WeakSet<Socket>();

/** Handles `clientError`: responds to bytes that are not a request. */
export function answerBrokenRequest(app: HttpApp, error: Error & { code?: string }, socket: Socket): void {
  const isGone = error.code === 'ECONNRESET' || error.code === 'EPIPE';
  if (reportedFault.has(socket) && !isGone) return;
  reportedFault.add(socket);
  if (!socket.writable || isGone) return void socket.destroy();
  const { fault, status } = refusalOf(error);
  const exchange = app.exchangeOf(socket);
  if (exchange === undefined) {
    // A 408 could be mistaken for the response to a request that is just being sent.
    if (error.code === LATE && socket.bytesRead === 0) endAndLinger(socket);
    else answerRaw(app, socket, { fault, status });
  } else if (!exchange.request.complete) {
    // The request may be answered already.
    exchange.failAndClose(fault, status);
    // Responses to earlier requests are sent first.
    exchange.whenSent(() => endAndLinger(socket));
  } else if (exchange.answered) exchange.whenSent(() => answerRaw(app, socket, { fault, status }));
  // Only the bytes after this request are malformed.
  else exchange.closeAfterAnswer();
}

function refusalOf(error: Error & { code?: string }): Refusal {
  const invalid = (message: string, details?: Record<string, number>) =>
    new PublicError('VALIDATION_ERROR', { message, cause: error, ...(details && { details }) });
  const limitBytes = HEADER_BYTES_MAX;
  // The network may be the cause, and clients drop a batch on a 4xx.
  if (error.code === LATE) return { fault: new PublicError('INTERNAL_SERVER_ERROR', { cause: error }) };
  if (error.code === 'HPE_HEADER_OVERFLOW') {
    const message = `Path and headers are larger than ${limitBytes} bytes, or there are more than ${HEADER_LINES_MAX} headers.`;
    return { fault: invalid(message, { limitBytes, limitHeaders: HEADER_LINES_MAX }), status: HEADERS_TOO_LARGE };
  }
  if (error.code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW')
    return { fault: invalid(`The chunk extensions of the body are larger than ${limitBytes} bytes.`, { limitBytes }) };
  return { fault: invalid('The request is not valid HTTP.') };
}

function answerRaw(app: HttpApp, socket: Socket, { fault, status: statusOverride }: Refusal): void {
  const { traceId } = traceOf(undefined);
  const { body, status: defaultStatus } = toEnvelope(fault, { traceId, link: app.context.link });
  const status = statusOverride ?? defaultStatus;
  const text = JSON.stringify(body);
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(text)}`,
    `x-trace-id: ${traceId}`,
    'connection: close',
  ];
  app.context.onAnswer(null, status);
  socket.write(`${lines.join('\r\n')}\r\n\r\n${text}`);
  endAndLinger(socket);
}

/** Half-closes first, because a reset could discard the response. */
function endAndLinger(socket: Socket): void {
  socket.end();
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(timer));
  socket.on('error', () => {});
}

/**
 * Waits for work until a deadline, after which the work continues.
 * @throws PublicError thrown by the work; INTERNAL_SERVER_ERROR for other errors and the deadline
 */
export async function settleWithin<T>(deadlineMs: number, work: Promise<T>): Promise<T> {
  try {
    return await waitAtMost(deadlineMs, work, () => {
      throw new Error(`not done within ${deadlineMs} ms`);
    });
  } catch (error) {
    throw error instanceof PublicError ? error : new PublicError('INTERNAL_SERVER_ERROR', { cause: error });
  }
}

export type Readiness = boolean | Readonly<Record<string, boolean>>;

export type ReadinessChecks = Readonly<Record<string, () => boolean | Promise<boolean>>>;

export interface AdminServerOptions {
  host: string;
  /** 0 selects a free port. */
  port: number;
  /**
   * Called for each `/readyz`. A check that throws or hangs is not ready. Separate checks have one second each; a
   * single function has two seconds, and is reported as `service`.
   */
  ready: ReadinessChecks | (() => Readiness | Promise<Readiness>);
  /** Checks whose failure is reported but leaves the service ready. */
  degraded?: ReadinessChecks;
  /** Why stores are unusable, by name; reported when a check fails. */
  reasons?: () => Readonly<Record<string, string>>;
  metrics: Metrics;
}

/** Orchestrators wait one to a few seconds for a probe. */
const READY_MAX_MS = 2000;
const CHECK_MAX_MS = 1000;
const ADMIN_CONNECTIONS_MAX = 64;

/**
 * Opens `/livez` (200 while the process runs), `/readyz` (200 or 503 with
 * `{"ready","version","notReady","degraded","reasons"}`) and `/metrics`.
 * @throws Error when the port is in use
 */
export async function openAdminServer(options: AdminServerOptions): Promise<Closable & { readonly port: number }> {
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    const path = request.url?.split('?', 1)[0];
    if (request.method !== 'GET' && request.method !== 'HEAD') return answerJson(response, 404, { found: false });
    if (path === '/livez') return answerJson(response, 200, { live: true });
    if (path === '/readyz') return void answerReadiness(options, response);
    if (path === '/metrics') return void answerMetrics(options.metrics, response);
    answerJson(response, 404, { found: false });
  };
  const { server } = createNodeServer({
    listener,
    connectionsMax: ADMIN_CONNECTIONS_MAX,
    onBroken: (_error, socket) => socket.destroy(),
  });
  await listen(server, options.host, options.port);
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answerReadiness(options: AdminServerOptions, response: ServerResponse): Promise<void> {
  const { ready, metrics } = options;
  const required = typeof ready === 'function' ? runCheck(ready, READY_MAX_MS) : runChecks(ready);
  const results = await Promise.all([required, runChecks(options.degraded ?? {})]);
  const [notReady = [], degraded = []] = results.map(failedCheckNames);
  const isReady = notReady.length === 0;
  const isWhole = isReady && degraded.length === 0;
  const reasons = isWhole ? {} : (options.reasons?.() ?? {});
  answerJson(response, isReady ? 200 : 503, {
    ready: isReady,
    version: metrics.version,
    notReady,
    ...(degraded.length > 0 && { degraded }),
    ...(Object.keys(reasons).length > 0 && { reasons }),
  });
}

function failedCheckNames(readiness: Readiness): string[] {
  if (typeof readiness === 'boolean') return readiness ? [] : ['service'];
  return Object.entries(readiness)
    .filter(([, ready]) => !ready)
    .map(([name]) => name);
}

async function runChecks(checks: ReadinessChecks): Promise<Readiness> {
  const results = Object.entries(checks).map(async ([name, check]) => [name, await runCheck(check, CHECK_MAX_MS)]);
  return Object.fromEntries(await Promise.all(results));
}

async function runCheck<T>(check: () => T | Promise<T>, boundMs: number): Promise<T | false> {
  return waitAtMost(boundMs, Promise.resolve().then(check), () => false as const).catch(() => false as const);
}

async function answerMetrics(metrics: Metrics, response: ServerResponse): Promise<void> {
  try {
    const text = await metrics.text();
    response.writeHead(200, { 'content-type': metrics.contentType });
    response.end(text);
  } catch {
    answerJson(response, 500, { metrics: false });
  }
}

function answerJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}
