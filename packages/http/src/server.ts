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
  /** 0 takes a free port. */
  port: number;
  /** Most time in milliseconds for a caller to send its headers; tests set less. */
  headersMaxMs?: number;
  /** Most open connections; tests set less. */
  connectionsMax?: number;
}

export type HttpServerState = 'open' | 'draining' | 'closed';

export interface HttpServer extends Closable {
  readonly port: number;
  readonly state: HttpServerState;
  /**
   * Accepts no more connections, closes idle ones, answers requests in flight with `connection: close`, then resolves.
   */
  close(): Promise<void>;
}

/** An idle connection takes some 10 KB, so all of them 40 MB. A client on its own keeps one, a load balancer hundreds. */
const CONNECTIONS_MAX = 4096;
/**
 * Load balancers keep idle connections for 60 s. A shorter time would let them send into a connection that is closing.
 */
const KEEP_ALIVE_MS = 65_000;
/** Headers are one or two packets. */
const HEADERS_MAX_MS = 10_000;
/** Reading a body has its own, shorter bound. This one is for routes that do not read the body. */
const REQUEST_MAX_MS = 30_000;
/** How often Node looks for connections that have passed those two bounds. */
const CHECK_INTERVAL_MS = 2000;
/**
 * One body (10 s) and one publish deadline (2.5 s). The rest of the 25 s that a shutdown may take is for the producer.
 */
const DRAIN_MAX_MS = 13_000;
/** During a shutdown a connection that becomes idle is closed within this time. */
const IDLE_SWEEP_MS = 50;

/**
 * Without this member, which its types do not know, Node ends a connection as soon as the caller has ended its half,
 * also while the caller's last request is being worked on: the batch was stored and its answer lost. With it, the
 * answer ends the connection.
 */
type HalfOpenServer = Server & { httpAllowHalfOpen?: boolean };

/**
 * Listens for an app's requests.
 * @throws Error when the port cannot be taken
 */
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
    // The app checks it itself, and answers with its envelope.
    requireHostHeader: false,
  });
  const { connections } = created;
  const server: HalfOpenServer = created.server;
  server.maxHeadersCount = HEADER_LINES_MAX;
  server.httpAllowHalfOpen = true;
  // Expectations other than 100-continue are ignored on every path: RFC 9110 (10.1.1) allows it, the contract has no
  // 417, and clients would drop a good batch for a header that something between may have added.
  server.on('checkExpectation', app.listener);
  server.on('connect', (_request, socket) => answerRaw(app, socket as Socket, { fault: notFound() }));
  await listen(server, host, port);

  let state: HttpServerState = 'open';
  let closing: Promise<void> | null = null;
  const drain = async () => {
    state = 'draining';
    app.context.draining = true;
    for (const stream of app.context.streams) stream.end();
    // No request has come on these connections yet; browsers open some in advance. Node does not count them as idle,
    // and would wait for them until the end of the shutdown.
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

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
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

/** Node's own bound for request line and headers together. Written here because callers are told of it. */
const HEADER_BYTES_MAX = 16 * 1024;
/**
 * Far more than any caller sends. Without a bound, 16 KiB could be thousands of headers, each of which becomes an
 * object.
 */
const HEADER_LINES_MAX = 1000;
/** Time for a caller to read the answer to a broken request before the connection is cut. */
const LINGER_MS = 1000;
/**
 * RFC 6585: the only status that says which part is too large. The code of the envelope stays that of a wrong request.
 */
const HEADERS_TOO_LARGE = 431;

/** Node's code for headers, or a request, that took too long. */
const LATE = 'ERR_HTTP_REQUEST_TIMEOUT';

/** A fault, and its status where that is not the one of its code. */
interface Refusal {
  readonly fault: PublicError;
  readonly status?: number;
}

/** Connections that have their answer: Node calls again for every piece of data after the first broken one. */
const reportedFault = new WeakSet<Socket>();

/**
 * Answers data that is no request: bytes that are not HTTP, headers that are too long, a request that takes too long.
 * To be called for `clientError` of Node's server.
 */
export function answerBrokenRequest(app: HttpApp, error: Error & { code?: string }, socket: Socket): void {
  const isGone = error.code === 'ECONNRESET' || error.code === 'EPIPE';
  if (reportedFault.has(socket) && !isGone) return;
  reportedFault.add(socket);
  if (!socket.writable || isGone) {
    socket.destroy();
    return;
  }
  const { fault, status } = refusalOf(error);
  const exchange = app.exchangeOf(socket);
  if (exchange === undefined) {
    // No request was sent, so no answer is. The caller could take a 408 for the answer to a request that it is just
    // sending.
    if (error.code === LATE && socket.bytesRead === 0) endAndLinger(socket);
    else answerRaw(app, socket, { fault, status });
  } else if (!exchange.request.complete) {
    // It may have its answer already, such as a refusal of its headers. A request has one answer only.
    exchange.failAndClose(fault, status);
    // Not earlier: answers to earlier requests may still be on their way, and go out first.
    exchange.whenSent(() => endAndLinger(socket));
  } else if (exchange.answered) exchange.whenSent(() => answerRaw(app, socket, { fault, status }));
  // Only the data after this request is broken, so its own answer must stay as it is.
  else exchange.closeAfterAnswer();
}

function refusalOf(error: Error & { code?: string }): Refusal {
  const invalid = (message: string, details?: Record<string, number>) =>
    new PublicError('VALIDATION_ERROR', { message, cause: error, ...(details && { details }) });
  switch (error.code) {
    case LATE:
      // The network may be the cause. So the answer is no 4xx, since callers would then drop their batch.
      return { fault: new PublicError('INTERNAL_SERVER_ERROR', { cause: error }) };
    case 'HPE_HEADER_OVERFLOW': {
      const details = { limitBytes: HEADER_BYTES_MAX, limitHeaders: HEADER_LINES_MAX };
      const message = `Path and headers may have ${HEADER_BYTES_MAX} bytes together, and there may be ${HEADER_LINES_MAX} headers.`;
      return { fault: invalid(message, details), status: HEADERS_TOO_LARGE };
    }
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW': {
      const message = `The chunk extensions of a body may have ${HEADER_BYTES_MAX} bytes together.`;
      return { fault: invalid(message, { limitBytes: HEADER_BYTES_MAX }) };
    }
    default:
      return { fault: invalid('The request is not valid HTTP.') };
  }
}

/** Answers where there is no request to answer, and ends the connection. */
function answerRaw(app: HttpApp, socket: Socket, { fault, ...own }: Refusal): void {
  const { traceId } = traceOf(undefined);
  const { body, ...of } = toEnvelope(fault, { traceId, link: app.context.link });
  const status = own.status ?? of.status;
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

function endAndLinger(socket: Socket): void {
  socket.end();
  linger(socket);
}

/**
 * Ends our half of the connection first, so that a reset does not discard the answer. Cut if the caller does not end
 * its half.
 */
function linger(socket: Socket): void {
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(timer));
  socket.on('error', () => {});
}

/**
 * Waits for work until a deadline. The work goes on after it; a caller that needs its end must listen to it.
 * @throws PublicError as the work throws it; INTERNAL_SERVER_ERROR for any other fault and for the deadline
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

/** The answer to `/readyz`: yes or no for the whole service, or one answer for each thing that it needs, by name. */
export type Readiness = boolean | Readonly<Record<string, boolean>>;

/** One check for each thing that a service needs, by the name that `/readyz` shows when it fails. */
export type ReadinessChecks = Readonly<Record<string, () => boolean | Promise<boolean>>>;

export interface AdminServerOptions {
  host: string;
  /** 0 takes a free port; `port` of the result says which. */
  port: number;
  /**
   * Asked on every `/readyz`. A check that throws or takes too long counts as not ready. Separate checks have one
   * second each, so the one that hangs can be named. One function for everything has two seconds, and when it hangs,
   * only `service` can be named.
   */
  ready: ReadinessChecks | (() => Readiness | Promise<Readiness>);
  /**
   * Asked together with `ready`. A check that fails here is named under `degraded`, and the service stays ready. For
   * parts that the service can do without: taking it out of service would end what still works.
   */
  degraded?: ReadinessChecks;
  /** Why stores cannot be used, by their names. Shown when something is not ready or degraded. */
  reasons?: () => Readonly<Record<string, string>>;
  metrics: Metrics;
}

/** Orchestrators wait one to a few seconds for a probe. */
const READY_MAX_MS = 2000;
/** Shorter than the bound of the whole. A store that needs longer for a ping cannot serve anybody. */
const CHECK_MAX_MS = 1000;
/** Orchestrators and metric collectors have one or two each. */
const ADMIN_CONNECTIONS_MAX = 64;

/**
 * Opens the operator's listener: `/livez` (200 while the process runs, whatever the stores do), `/readyz` (200, or 503
 * with `{"ready":false,"version":"0.1.0","notReady":[names],"degraded":[names],"reasons":{store:sentence}}`) and
 * `/metrics` (Prometheus text). A service that is ready may name `degraded` and `reasons` too.
 * @throws Error when the port cannot be taken
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
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, () => {
      server.off('error', reject);
      resolve();
    });
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        // No answer of this listener is lost for good: probes ask again.
        server.closeAllConnections();
      }),
  };
}

async function answerReadiness(options: AdminServerOptions, response: ServerResponse): Promise<void> {
  const { ready, metrics } = options;
  const asked = typeof ready === 'function' ? runCheck(ready, READY_MAX_MS) : runChecks(ready);
  const [needed, besides] = await Promise.all([asked, runChecks(options.degraded ?? {})]);
  const [notReady, degraded] = [failedCheckNames(needed), failedCheckNames(besides)];
  const isReady = notReady.length === 0;
  const isWhole = isReady && degraded.length === 0;
  const faults = { ...(degraded.length === 0 ? {} : { degraded }), ...reasonsOf(options) };
  answerJson(response, isReady ? 200 : 503, {
    ready: isReady,
    version: metrics.version,
    notReady,
    ...(isWhole ? {} : faults),
  });
}

function reasonsOf({ reasons }: AdminServerOptions): { reasons?: Readonly<Record<string, string>> } {
  const known = reasons?.() ?? {};
  return Object.keys(known).length === 0 ? {} : { reasons: known };
}

function failedCheckNames(readiness: Readiness): string[] {
  if (typeof readiness === 'boolean') return readiness ? [] : ['service'];
  return Object.entries(readiness)
    .filter(([, ready]) => !ready)
    .map(([name]) => name);
}

async function runChecks(checks: ReadinessChecks): Promise<Readiness> {
  const asked = Object.entries(checks).map(async ([name, check]) => [name, await runCheck(check, CHECK_MAX_MS)]);
  return Object.fromEntries(await Promise.all(asked));
}

/** False when it throws or does not answer in time. */
async function runCheck<T>(ask: () => T | Promise<T>, boundMs: number): Promise<T | false> {
  return waitAtMost(boundMs, Promise.resolve().then(ask), () => false as const).catch(() => false as const);
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
