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
  /** Time limit for the headers. Lower in tests. */
  headersMaxMs?: number;
  /** Lower in tests. */
  connectionsMax?: number;
}

export type HttpServerState = 'open' | 'draining' | 'closed';

export interface HttpServer extends Closable {
  readonly port: number;
  readonly state: HttpServerState;
  /** Stops accepting connections, closes idle connections, completes requests in flight, then resolves. */
  close(): Promise<void>;
}

/** An idle connection uses about 10 KB. */
const CONNECTIONS_MAX = 4096;
/** More than the 60 s for which load balancers keep idle connections open. */
const KEEP_ALIVE_MS = 65_000;
const HEADERS_MAX_MS = 10_000;
/** For routes that do not read the body. Reading a body has a lower limit. */
const REQUEST_MAX_MS = 30_000;
/** How often Node checks `HEADERS_MAX_MS` and `REQUEST_MAX_MS`. */
const CHECK_INTERVAL_MS = 2000;
/** Time for a body (10 s) and a publish deadline (2.5 s). The rest of the 25 s shutdown is for the producer. */
const DRAIN_MAX_MS = 13_000;
/** How often idle connections are closed during a shutdown. */
const IDLE_SWEEP_MS = 50;

/** Missing in Node's types. Without this option Node closes half-closed connections, and the response would be lost. */
type HalfOpenServer = Server & { httpAllowHalfOpen?: boolean };

/** @throws Error if the port is in use */
export async function openHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const { app, host, port, headersMaxMs = HEADERS_MAX_MS } = options;
  const created = createNodeServer({
    listener: app.listener,
    connectionsMax: options.connectionsMax ?? CONNECTIONS_MAX,
    onMalformed: (error, socket) => respondToMalformedRequest(app, error, socket),
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
  // Expectations other than 100-continue are ignored (RFC 9110, 10.1.1), because clients would drop a batch on a 417.
  server.on('checkExpectation', app.listener);
  server.on('connect', (_request, socket) => sendRawResponse(app, socket as Socket, { fault: notFound() }));
  await listen(server, host, port);

  let state: HttpServerState = 'open';
  let closing: Promise<void> | null = null;
  const drain = async () => {
    state = 'draining';
    app.context.draining = true;
    for (const stream of app.context.streams) stream.end();
    // Node does not treat connections without a request as idle, and would wait for them.
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

function closeWithin(server: Server, limitMs: number): Promise<void> {
  return new Promise((resolve) => {
    const sweep = setInterval(() => server.closeIdleConnections(), IDLE_SWEEP_MS);
    const timeout = setTimeout(() => server.closeAllConnections(), limitMs);
    server.close(() => {
      clearInterval(sweep);
      clearTimeout(timeout);
      resolve();
    });
  });
}

/** Node's default, repeated for the error message. */
const HEADER_BYTES_MAX = 16 * 1024;
/** Prevents 16 KiB of headers from becoming thousands of objects. */
const HEADER_LINES_MAX = 1000;
const LINGER_MS = 1000;
const HEADERS_TOO_LARGE = 431;

/** Node's code for a header or request timeout. */
const TIMED_OUT = 'ERR_HTTP_REQUEST_TIMEOUT';

interface RawError {
  readonly fault: PublicError;
  readonly status?: number;
}

/** Sockets whose error is already handled. Node reports every chunk after the first malformed chunk. */
const faultySockets = new WeakSet<Socket>();

/** Handles `clientError`: responds to bytes that are not a valid request. */
export function respondToMalformedRequest(app: HttpApp, error: Error & { code?: string }, socket: Socket): void {
  const isDisconnected = error.code === 'ECONNRESET' || error.code === 'EPIPE';
  if (faultySockets.has(socket) && !isDisconnected) return;
  faultySockets.add(socket);
  if (!socket.writable || isDisconnected) return void socket.destroy();
  const { fault, status } = toRawError(error);
  const exchange = app.exchangeOf(socket);
  if (exchange === undefined) {
    // A 408 could be mistaken for the response to a request that is being sent.
    if (error.code === TIMED_OUT && socket.bytesRead === 0) endAndLinger(socket);
    else sendRawResponse(app, socket, { fault, status });
  } else if (!exchange.request.complete) {
    // The request may already have a response.
    exchange.failAndClose(fault, status);
    // Waits until the responses to earlier requests are sent.
    exchange.whenSent(() => endAndLinger(socket));
  } else if (exchange.answered) exchange.whenSent(() => sendRawResponse(app, socket, { fault, status }));
  // Only the bytes after this request are malformed.
  else exchange.closeAfterAnswer();
}

function toRawError(error: Error & { code?: string }): RawError {
  const invalid = (message: string, details?: Record<string, number>) =>
    new PublicError('VALIDATION_ERROR', { message, cause: error, ...(details && { details }) });
  const limitBytes = HEADER_BYTES_MAX;
  // Not a 4xx, because the network may be the cause and clients drop a batch on a 4xx.
  if (error.code === TIMED_OUT) return { fault: new PublicError('INTERNAL_SERVER_ERROR', { cause: error }) };
  if (error.code === 'HPE_HEADER_OVERFLOW') {
    const message = `The path and headers exceed ${limitBytes} bytes or ${HEADER_LINES_MAX} headers.`;
    return { fault: invalid(message, { limitBytes, limitHeaders: HEADER_LINES_MAX }), status: HEADERS_TOO_LARGE };
  }
  if (error.code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW')
    return { fault: invalid(`The chunk extensions exceed ${limitBytes} bytes.`, { limitBytes }) };
  return { fault: invalid('The request is not valid HTTP.') };
}

function sendRawResponse(app: HttpApp, socket: Socket, { fault, status: statusOverride }: RawError): void {
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

/** Half-closes the connection first, because a reset could discard the response. */
function endAndLinger(socket: Socket): void {
  socket.end();
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(timer));
  socket.on('error', () => {});
}

/**
 * Waits for work until a deadline. The work continues after the deadline.
 * @throws PublicError from the work; INTERNAL_SERVER_ERROR for any other error and at the deadline
 */
export async function settleWithin<T>(deadlineMs: number, work: Promise<T>): Promise<T> {
  try {
    return await waitAtMost(deadlineMs, work, () => {
      throw new Error(`not completed within ${deadlineMs} ms`);
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
   * Called for each `/readyz` request. A check that throws or hangs is not ready. Named checks time out after one
   * second. A single function times out after two seconds and is reported as `service`.
   */
  ready: ReadinessChecks | (() => Readiness | Promise<Readiness>);
  /** Checks whose failure is reported although the service stays ready. */
  degraded?: ReadinessChecks;
  /** Returns why stores are unusable, by name. Reported if a check fails. */
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
 * @throws Error if the port is in use
 */
export async function openAdminServer(options: AdminServerOptions): Promise<Closable & { readonly port: number }> {
  reportChecks(options);
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    const path = request.url?.split('?', 1)[0];
    if (request.method !== 'GET' && request.method !== 'HEAD') return sendJsonResponse(response, 404, { found: false });
    if (path === '/livez') return sendJsonResponse(response, 200, { live: true });
    if (path === '/readyz') return void sendReadinessResponse(options, response);
    if (path === '/metrics') return void sendMetricsResponse(options.metrics, response);
    sendJsonResponse(response, 404, { found: false });
  };
  const { server } = createNodeServer({
    listener,
    connectionsMax: ADMIN_CONNECTIONS_MAX,
    onMalformed: (_error, socket) => socket.destroy(),
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

async function sendReadinessResponse(options: AdminServerOptions, response: ServerResponse): Promise<void> {
  const { metrics } = options;
  const results = await Promise.all([runRequiredChecks(options), runChecks(options.degraded ?? {})]);
  const [notReady = [], degraded = []] = results.map(failedCheckNames);
  const isReady = notReady.length === 0;
  const isHealthy = isReady && degraded.length === 0;
  const reasons = isHealthy ? {} : (options.reasons?.() ?? {});
  sendJsonResponse(response, isReady ? 200 : 503, {
    ready: isReady,
    version: metrics.version,
    notReady,
    ...(degraded.length > 0 && { degraded }),
    ...(Object.keys(reasons).length > 0 && { reasons }),
  });
}

/** Reports every check on every scrape. */
function reportChecks(options: AdminServerOptions): void {
  options.metrics.collectedGauge('playline_ready', '1 if a check passes that the service requires', {
    labelNames: ['check'],
    async collect(gauge) {
      for (const [check, passes] of Object.entries(await runRequiredChecks(options))) gauge.set({ check }, passes ? 1 : 0);
    },
  });
  options.metrics.collectedGauge('playline_degraded', '1 if a check fails that the service does not require', {
    labelNames: ['check'],
    async collect(gauge) {
      const checks = await runChecks(options.degraded ?? {});
      for (const [check, passes] of Object.entries(checks)) gauge.set({ check }, passes ? 0 : 1);
    },
  });
}

const failedCheckNames = (checks: CheckResults): string[] =>
  Object.entries(checks)
    .filter(([, passes]) => !passes)
    .map(([name]) => name);

type CheckResults = Readonly<Record<string, boolean>>;

async function runRequiredChecks({ ready }: AdminServerOptions): Promise<CheckResults> {
  if (typeof ready !== 'function') return runChecks(ready);
  const result = await runCheck(ready, READY_MAX_MS);
  return typeof result === 'boolean' ? { service: result } : result;
}

async function runChecks(checks: ReadinessChecks): Promise<CheckResults> {
  const results = Object.entries(checks).map(async ([name, check]) => [name, await runCheck(check, CHECK_MAX_MS)]);
  return Object.fromEntries(await Promise.all(results));
}

async function runCheck<T>(check: () => T | Promise<T>, limitMs: number): Promise<T | false> {
  return waitAtMost(limitMs, Promise.resolve().then(check), () => false as const).catch(() => false as const);
}

async function sendMetricsResponse(metrics: Metrics, response: ServerResponse): Promise<void> {
  try {
    const text = await metrics.text();
    response.writeHead(200, { 'content-type': metrics.contentType });
    response.end(text);
  } catch {
    sendJsonResponse(response, 500, { metrics: false });
  }
}

function sendJsonResponse(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}
