import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Closable, Metrics } from '@playline/runtime';
import { waitAtMost } from '@playline/stores';
import { createNodeServer } from './node-server.ts';

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
const CONNECTIONS_MAX = 64;

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
    connectionsMax: CONNECTIONS_MAX,
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
  const asked = typeof ready === 'function' ? askWithin(ready, READY_MAX_MS) : askEach(ready);
  const [needed, besides] = await Promise.all([asked, askEach(options.degraded ?? {})]);
  const [notReady, degraded] = [namesNotReady(needed), namesNotReady(besides)];
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

function namesNotReady(readiness: Readiness): string[] {
  if (typeof readiness === 'boolean') return readiness ? [] : ['service'];
  return Object.entries(readiness)
    .filter(([, ready]) => !ready)
    .map(([name]) => name);
}

async function askEach(checks: ReadinessChecks): Promise<Readiness> {
  const asked = Object.entries(checks).map(async ([name, check]) => [name, await askWithin(check, CHECK_MAX_MS)]);
  return Object.fromEntries(await Promise.all(asked));
}

/** False when it throws or does not answer in time. */
async function askWithin<T>(ask: () => T | Promise<T>, boundMs: number): Promise<T | false> {
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
