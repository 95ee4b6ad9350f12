import type { Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Closable } from '@playline/runtime';
import type { HttpApp } from './app.ts';
import { answerBrokenRequest, answerRaw, HEADER_BYTES_MAX, HEADER_LINES_MAX } from './broken-request.ts';
import { notFound } from './exchange.ts';
import { createNodeServer } from './node-server.ts';

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
    app.frame.draining = true;
    for (const stream of app.frame.streams) stream.end();
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
