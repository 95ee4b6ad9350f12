import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { freePorts } from '@playline/infra/local';
import { bareEnvironment, testStores, until } from '@playline/testkit';
import { CHAIN, OTHER_CHAIN } from './open-chain-api.ts';

/** Less than the time limit of a test. A busy machine has taken more than 20 s to start a process. */
const START_MAX_MS = 50_000;
const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url));

/** A chain API as its own process. */
export interface ChainApiProcess {
  readonly child: ChildProcess;
  readonly url: string;
  readonly adminUrl: string;
  /** Of a path below `/v1/chains`. */
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  /** Names of what is missing; empty when it is ready. */
  notReady(): Promise<readonly string[]>;
  /** Everything that it has written to its standard output and error. */
  output(): string;
  /** Sends SIGTERM and waits for the end of the process. @returns its exit code */
  close(): Promise<number | null>;
}

/** @param environment its stores, and settings that replace those for tests */
export async function openProcess(environment: Readonly<Record<string, string>>): Promise<ChainApiProcess> {
  const [httpPort, adminPort] = await freePorts(2);
  const child = spawn(process.execPath, [MAIN], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...bareEnvironment(),
      LOG_LEVEL: 'error',
      HTTP_PORT: String(httpPort),
      ADMIN_PORT: String(adminPort),
      CHAINS: JSON.stringify([CHAIN, OTHER_CHAIN]),
      CURSOR_KEYS: `1=${'ab'.repeat(32)}`,
      KAFKA_BROKERS: testStores().kafka.join(','),
      SCHEMA_REGISTRY_URL: testStores().registry,
      ...environment,
    },
  });
  const ended = once(child, 'exit') as Promise<[number | null]>;
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  const [url, adminUrl] = [`http://127.0.0.1:${httpPort}`, `http://127.0.0.1:${adminPort}`];
  const alive = until('the process is alive', async () => (await fetch(`${adminUrl}/livez`)).ok, START_MAX_MS);
  await Promise.race([alive, ended.then(([code]) => Promise.reject(new Error(`ended with ${code}: ${output}`)))]);
  await until('it listens', async () => (await fetch(url)).status === 404);
  return {
    ...{ child, url, adminUrl },
    get: (path, headers = {}) => fetch(`${url}/v1/chains${path}`, { headers }),
    notReady: async () => {
      const { notReady = [] } = (await (await fetch(`${adminUrl}/readyz`)).json()) as { notReady?: string[] };
      return notReady;
    },
    output: () => output,
    close: async () => {
      if (child.exitCode === null) child.kill('SIGTERM');
      return (await ended)[0];
    },
  };
}
