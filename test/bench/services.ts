import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TOPICS } from '@playline/contracts';
import { freePorts } from '@playline/infra/ports';
import { type ServiceEntry, type ServiceName, serviceOf } from '../../infra/local/services.ts';
import type { Bench } from './figure.ts';
import { type Measured, openProcess, waitFor } from './processes.ts';

export interface Server extends Measured {
  readonly port: number;
  readonly adminPort: number;
}

const READY_MAX_MS = 180_000;

export const groupOf = ({ topicPrefix }: Pick<Bench, 'topicPrefix'>, service: ServiceName): string =>
  topicPrefix + service;

/** Starts a service with its production settings. @throws Error if the service does not become ready in time */
export async function startService(
  bench: Bench,
  name: ServiceName,
  settings: Readonly<Record<string, string>> = {},
): Promise<Server> {
  const [port = 0, adminPort = 0] = await freePorts(2);
  const { environment, nodeOptions }: ServiceEntry = serviceOf(name);
  const service = openProcess(`services/${name}/src/main.ts`, {
    nodeOptions,
    environment: {
      ...environment,
      ...bench.serviceEnvironment,
      CONSUMER_GROUP: groupOf(bench, name),
      HTTP_PORT: String(port),
      ADMIN_PORT: String(adminPort),
      ...settings,
    },
  });
  await waitUntilReady(service, `http://127.0.0.1:${adminPort}/readyz`);
  return { ...service, port, adminPort };
}

async function waitUntilReady(measured: Measured, url: string): Promise<void> {
  const isReady = async () => (await fetch(url)).ok;
  try {
    await waitFor(`${url} responds with 200`, isReady, { measured, maxMs: READY_MAX_MS });
  } catch (error) {
    await measured.close();
    throw error;
  }
}

/** The highest limits that the settings allow, so that the limiter runs but rejects no requests. */
export const UNLIMITED = { RATE_LIMIT_MESSAGES_PER_S: '200000', RATE_LIMIT_BURST: '10000000' };

export const startGateway = (bench: Bench, settings: Record<string, string> = UNLIMITED): Promise<Server> =>
  startService(bench, 'gateway', settings);

export const startWriter = (bench: Bench, settings: Record<string, string> = {}): Promise<Server> =>
  startService(bench, 'event-writer', settings);

export const CURSOR_SECRET: string = 'cd'.repeat(32);

const UNLIMITED_CHAIN = {
  RATE_LIMIT_CALLS: '1000000',
  RATE_LIMIT_WINDOW_S: '1',
  MINTS_PER_MINUTE: '1000000',
  MINTS_BURST: '10000000',
  // Slow brokers on a busy machine must not fail the measurement.
  PUBLISH_DEADLINE_MS: '20000',
};

export const startChainApi = (bench: Bench, chains: readonly { name: string; id: string }[]): Promise<Server> =>
  startService(bench, 'chain-api', {
    ...UNLIMITED_CHAIN,
    CURSOR_KEYS: `1=${CURSOR_SECRET}`,
    CHAINS: JSON.stringify(chains),
  });

/** Returns the peers' topic, which no service reads. It has as many partitions as the message topic. */
export const peerTopicOf = ({ topicPrefix }: Bench): string => `${topicPrefix}${TOPICS.messages.name}.dead`;

export const peerEnvironment = (bench: Bench): Record<string, string> => ({
  ...bench.environment,
  BENCH_KEY: bench.publishableKey,
  BENCH_TOPIC: peerTopicOf(bench),
  BENCH_LINKS_TOPIC: `${bench.topicPrefix}${TOPICS.identityLinks.name}.dead`,
});

/** Starts an HTTP server from a bench file. @param readyPath responds with 200 when the server is ready */
export async function startPeer(
  bench: Bench,
  file: string,
  { environment = {}, readyPath = '/readyz' }: { environment?: Record<string, string>; readyPath?: string } = {},
): Promise<Server> {
  const [port = 0] = await freePorts(1);
  const peer = openProcess(`test/bench/${file}.ts`, {
    environment: { ...peerEnvironment(bench), ...environment, HTTP_PORT: String(port) },
  });
  await waitUntilReady(peer, `http://127.0.0.1:${port}${readyPath}`);
  return { ...peer, port, adminPort: port };
}

export async function startBareServer(bench: Bench, body: Buffer): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), 'playline-bench-page-'));
  const file = join(folder, 'response');
  writeFileSync(file, body);
  // The server reads the file when it starts.
  return startPeer(bench, 'reference/http-server', { environment: { RESPONSE_FILE: file } }).finally(() =>
    rmSync(folder, { recursive: true }),
  );
}
