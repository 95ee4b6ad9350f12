import { TOPICS } from '@playline/contracts';
import type { Bench } from './figure.ts';
import { findFreePort } from './free-port.ts';
import { type LoadFigure, measureUnderLoad } from './load.ts';
import { cpuSecondsOf, type Measured, openProcess, openService, waitFor, waitUntilReady } from './processes.ts';
import type { Traffic } from './traffic.ts';

/** A server of the endpoint for messages. */
export interface Server extends Measured {
  port: number;
}

const WARM_UP_MS = 2_000;
const WINDOW_MS = 8_000;

/** What may differ between loads on one server. */
export interface LoadShape {
  batchSize: number;
  connections: number;
  traffic?: Traffic;
  requestsPerSecond?: number;
  warmUpMs?: number;
  /** With `work`, only an upper bound. */
  windowMs?: number;
  /** Begins with the window. The window ends with it. */
  work?: () => Promise<void>;
}

/** Puts a load on a server and measures its cost. */
export function loadOn(server: Server, bench: Bench, shape: LoadShape): Promise<LoadFigure> {
  const { work, ...load } = shape;
  return measureUnderLoad(
    server.pid,
    {
      port: server.port,
      path: '/v1/audience/messages',
      headers: { 'x-service-publishable-key': bench.accessKey },
      warmUpMs: WARM_UP_MS,
      windowMs: WINDOW_MS,
      ...load,
    },
    work,
  );
}

/** CPU-seconds after which the code of both servers is compiled and rates stop growing. */
const WARM_CPU_S = 4;
/** On a machine so busy that the server gets no such time, the measurement is of little use anyway. */
const WARM_LOADS_MAX = 8;
const WARM_WINDOW_MS = 2_000;

/**
 * Loads a server until it has used this much CPU time. Wall-clock time would not do: on a busy machine a server may get
 * a tenth of it, and compilation would then distort the measurement.
 */
export async function warmUp(server: Server, bench: Bench, shape: LoadShape): Promise<void> {
  const before = cpuSecondsOf(server.pid);
  for (let loads = 0; loads < WARM_LOADS_MAX && cpuSecondsOf(server.pid) - before < WARM_CPU_S; loads += 1) {
    await loadOn(server, bench, { ...shape, windowMs: WARM_WINDOW_MS });
  }
}

/** The highest limits that the settings allow, so that requests pass the limiter but are never refused. */
const UNLIMITED = { RATE_LIMIT_MESSAGES_PER_S: '200000', RATE_LIMIT_BURST: '10000000' };

/** The gateway as it is deployed, except for its limits unless settings say otherwise. */
export async function openGateway(bench: Bench, settings: Record<string, string> = UNLIMITED): Promise<Server> {
  const [port, adminPort] = [await findFreePort(), await findFreePort()];
  const ports = { HTTP_HOST: '127.0.0.1', HTTP_PORT: String(port), ADMIN_PORT: String(adminPort) };
  const server = openService('gateway', { ...bench.serviceEnvironment, ...settings, ...ports });
  await waitUntilReady(server, adminPort);
  return { ...server, port };
}

/** Peers publish to a topic with as many partitions, which no service reads. */
export function peerEnvironment(bench: Bench): Record<string, string> {
  return {
    ...bench.environment,
    BENCH_KEY: bench.accessKey,
    BENCH_TOPIC: `${bench.topicPrefix}${TOPICS.messages.name}.dead`,
    BENCH_LINKS_TOPIC: `${bench.topicPrefix}${TOPICS.identityLinks.name}.dead`,
  };
}

/** Starts a peer from a file below `reference`. */
export async function openPeer(file: string, bench: Bench): Promise<Server> {
  const port = await findFreePort();
  const server = openProcess(`test/bench/${file}.ts`, {
    environment: { ...peerEnvironment(bench), HTTP_PORT: String(port) },
  });
  const ready = async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok;
  await waitFor(`${file} answers`, ready, { measured: server, maxMs: 30_000 });
  return { ...server, port };
}
