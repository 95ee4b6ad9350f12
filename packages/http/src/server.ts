import { createServer, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { PublicError, toEnvelope } from '@playline/errors';
import type { Closable } from '@playline/runtime';
import type { HttpApp } from './app.ts';
import { notFound } from './exchange.ts';
import { traceOf } from './trace.ts';

export interface HttpServerOptions {
  app: HttpApp;
  host: string;
  /** 0 takes a free port. */
  port: number;
}

export type HttpServerState = 'open' | 'draining' | 'closed';

export interface HttpServer extends Closable {
  readonly port: number;
  readonly state: HttpServerState;
  /** Stops accepting, ends idle connections, answers what is in flight with `connection: close`, then resolves. */
  close(): Promise<void>;
}

/** Longer than the 60 s for which load balancers keep idle connections, else they would send into a closing one. */
const KEEP_ALIVE_MS = 65_000;
/** Headers are one or two packets. */
const HEADERS_MAX_MS = 10_000;
/** The body reader has its own, shorter bound; this one catches whatever does not read its body. */
const REQUEST_MAX_MS = 30_000;
/** How often Node looks for connections past those two bounds. */
const CHECK_INTERVAL_MS = 2000;
/** Body (10 s) and publish deadline (2.5 s) in a row; what is left of the 25 s of a whole drain is the producer's. */
const DRAIN_MAX_MS = 13_000;
/** A connection that becomes idle while draining is ended within this time. */
const IDLE_SWEEP_MS = 50;
/** Time for a caller to read the answer to a broken request before the connection is cut. */
const LINGER_MS = 1000;

/**
 * Listens for an app's requests.
 * @throws Error when the port cannot be taken
 */
export async function openHttpServer({ app, host, port }: HttpServerOptions): Promise<HttpServer> {
  const server = createServer(
    {
      keepAliveTimeout: KEEP_ALIVE_MS,
      headersTimeout: HEADERS_MAX_MS,
      requestTimeout: REQUEST_MAX_MS,
      connectionsCheckingInterval: CHECK_INTERVAL_MS,
      // The app says so itself, in its envelope.
      requireHostHeader: false,
    },
    app.listener,
  );
  // Expectations other than 100-continue are ignored on every path: RFC 9110 (10.1.1) allows it, the contract has no
  // 417, and clients would drop a good batch for a header that something between may have added.
  server.on('checkExpectation', app.listener);
  server.on('clientError', (error: Error, socket) => answerBrokenRequest(app, error, socket as Socket));
  server.on('connect', (_request, socket) => answerRaw(app, socket as Socket, notFound()));
  const silent = trackSilentConnections(server);
  await listen(server, host, port);

  let state: HttpServerState = 'open';
  let closing: Promise<void> | null = null;
  const drain = async () => {
    state = 'draining';
    app.frame.draining = true;
    for (const socket of silent) if (socket.bytesRead === 0) socket.destroy();
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

/**
 * Connections on which no request has come yet, such as those that browsers open ahead of need. Node does not count
 * them as idle and would wait for them until the end of the drain.
 */
function trackSilentConnections(server: Server): ReadonlySet<Socket> {
  const silent = new Set<Socket>();
  server.on('connection', (socket) => {
    silent.add(socket);
    socket.once('close', () => silent.delete(socket));
  });
  server.on('request', (request) => silent.delete(request.socket));
  return silent;
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

/** Node calls this for bytes that are no HTTP, for headers that are too long and for requests that take too long. */
function answerBrokenRequest(app: HttpApp, error: Error & { code?: string }, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET' || error.code === 'EPIPE') {
    socket.destroy();
    return;
  }
  // A request that is late may be the network's doing: no 4xx, on which callers drop their batch.
  const late = error.code === 'ERR_HTTP_REQUEST_TIMEOUT';
  const message = 'The request is not valid HTTP.';
  const fault = late
    ? new PublicError('INTERNAL_SERVER_ERROR', { cause: error })
    : new PublicError('VALIDATION_ERROR', { message, cause: error });
  const exchange = app.exchangeOf(socket);
  if (exchange === undefined || exchange.answered) {
    answerRaw(app, socket, fault);
  } else if (exchange.request.complete) {
    // Only what came after it is broken: its own answer must not say otherwise.
    exchange.endConnection();
  } else {
    exchange.failAndClose(fault);
    linger(socket);
  }
}

function answerRaw(app: HttpApp, socket: Socket, fault: PublicError): void {
  const { traceId } = traceOf(undefined);
  const { status, body } = toEnvelope(fault, { traceId, link: app.frame.link });
  const text = JSON.stringify(body);
  const reason = { 400: 'Bad Request', 404: 'Not Found' }[status] ?? 'Internal Server Error';
  const lines = [
    `HTTP/1.1 ${status} ${reason}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(text)}`,
    `x-trace-id: ${traceId}`,
    'connection: close',
  ];
  app.frame.onAnswer(null, status);
  socket.end(`${lines.join('\r\n')}\r\n\r\n${text}`);
  linger(socket);
}

/** Half-closed first, so that the answer is not thrown away by a reset; cut when the caller does not close too. */
function linger(socket: Socket): void {
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(timer));
  socket.on('error', () => {});
}
