import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePorts } from '@playline/infra/ports';
import { bareEnvironment } from './bare-environment.ts';
import { until } from './until.ts';

/** Processes of a service that tests can stop, kill and suspend. */
export interface ServiceProcesses {
  /** Starts a process. Resolves when the process is ready. */
  start(settings?: Readonly<Record<string, string>>): Promise<ServiceProcess>;
  close(): Promise<void>;
}

export interface ServiceProcess {
  readonly child: ChildProcess;
  readonly admin: string;
  /** @returns the exit code */
  stop(signal: NodeJS.Signals): Promise<number | null>;
}

/** @param main entry file of the service @param environment variables for all processes, which inherit nothing else */
export function openServiceProcesses(main: string, environment: Readonly<Record<string, string>>): ServiceProcesses {
  const running = new Set<ServiceProcess>();
  return {
    start: async (settings = {}) => {
      const [port] = await freePorts(1);
      const child = spawn(process.execPath, [main], {
        env: { ...bareEnvironment(), ...environment, ADMIN_PORT: String(port), ...settings },
        stdio: ['ignore', 'inherit', 'inherit'],
      });
      const admin = `http://127.0.0.1:${port}`;
      const service: ServiceProcess = {
        child,
        admin,
        stop: async (signal) => {
          const exit = once(child, 'exit');
          child.kill(signal);
          return (await exit)[0];
        },
      };
      running.add(service);
      let ended: number | null = null;
      child.once('exit', (code) => {
        ended = code ?? -1;
        running.delete(service);
      });
      const isReady = async () => (await fetch(`${admin}/readyz`)).ok;
      await until('the service is ready or has exited', async () => ended !== null || (await isReady()));
      if (ended !== null) throw new Error(`${main} exited with ${ended} before it was ready`);
      return service;
    },
    close: async () => void (await Promise.all([...running].map((service) => service.stop('SIGKILL')))),
  };
}

/** Shorter than the test timeout. On a busy machine, starting a process can take more than 20 s. */
const START_MAX_MS = 50_000;

export interface HttpProcess {
  readonly child: ChildProcess;
  readonly url: string;
  readonly adminUrl: string;
  /** Returns the standard output and standard error received so far. */
  output(): string;
  /** Sends SIGTERM. @returns the exit code */
  close(): Promise<number | null>;
}

/**
 * Starts a service. Resolves when the service accepts requests.
 * @param environment variables besides the ports; the process inherits nothing else
 * @throws Error with the process's output if the process exits early
 */
export async function openHttpProcess(
  main: string,
  environment: Readonly<Record<string, string>>,
): Promise<HttpProcess> {
  const [httpPort, adminPort] = await freePorts(2);
  const ports = { HTTP_PORT: String(httpPort), ADMIN_PORT: String(adminPort) };
  const child = spawn(process.execPath, [main], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...bareEnvironment(), LOG_LEVEL: 'error', ...ports, ...environment },
  });
  const ended = once(child, 'exit') as Promise<[number | null]>;
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  const [url, adminUrl] = [`http://127.0.0.1:${httpPort}`, `http://127.0.0.1:${adminPort}`];
  const isAlive = until('the process is alive', async () => (await fetch(`${adminUrl}/livez`)).ok, START_MAX_MS);
  await Promise.race([isAlive, ended.then(([code]) => Promise.reject(new Error(`exited with ${code}: ${output}`)))]);
  await until('the service listens', async () => (await fetch(`${url}/none`)).status === 404);
  return {
    child,
    url,
    adminUrl,
    output: () => output,
    close: async () => {
      if (child.exitCode === null) child.kill('SIGTERM');
      return (await ended)[0];
    },
  };
}

const MODULE = new URL('clock/set-by-signal.ts', import.meta.url).href;

export interface WallClock {
  readonly environment: Readonly<Record<string, string>>;
  set(child: ChildProcess, shiftMs: number): Promise<void>;
  close(): void;
}

/** A wall clock that a test can shift. The monotonic clock is not affected. */
export function overrideWallClock(): WallClock {
  const folder = mkdtempSync(join(tmpdir(), 'test-clock-'));
  const file = join(folder, 'shift');
  return {
    environment: { NODE_OPTIONS: `--import=${MODULE}`, PLAYLINE_TEST_CLOCK: file },
    set: async (child, shiftMs) => {
      writeFileSync(file, String(shiftMs));
      child.kill('SIGUSR2');
      await until('the clock is set', () => readFileSync(`${file}.set`, 'utf8') === String(shiftMs));
    },
    close: () => rmSync(folder, { recursive: true }),
  };
}

/**
 * - open: forwards all bytes
 * - hung: accepts connections, but drops bytes in both directions
 * - muted: forwards bytes from clients, but drops bytes from the store
 * - cut: closes existing and new connections
 */
export type StoreProxyMode = 'open' | 'hung' | 'muted' | 'cut';

/** A TCP proxy between a process and a store. */
export interface StoreProxy {
  readonly port: number;
  mode: StoreProxyMode;
  /** Switches to `muted` when a client sends this string. Earlier requests still receive responses. */
  muteAt(text: string): void;
  close(): Promise<void>;
}

/** @param target local port of the store */
export async function openStoreProxy(target: number): Promise<StoreProxy> {
  const sockets = new Set<Socket>();
  let mode: StoreProxyMode = 'open';
  let muteTrigger: string | null = null;
  const server = createServer((client) => {
    if (mode === 'cut') return client.destroy();
    const store = connect(target, '127.0.0.1');
    for (const socket of [client, store]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        client.destroy();
        store.destroy();
        sockets.delete(socket);
      });
    }
    let received = '';
    client.on('data', (bytes) => {
      // The string may span several chunks.
      if (muteTrigger !== null) received = received.slice(-muteTrigger.length) + bytes.toString('latin1');
      if (muteTrigger !== null && received.includes(muteTrigger)) [mode, muteTrigger] = ['muted', null];
      if (mode !== 'hung') store.write(bytes);
    });
    store.on('data', (bytes) => mode === 'open' && client.write(bytes));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const closeAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    get mode() {
      return mode;
    },
    set mode(next) {
      // Connections that have lost bytes cannot be resumed.
      if (next === 'open' || next === 'cut') closeAll();
      mode = next;
    },
    muteAt(text) {
      muteTrigger = text;
    },
    close: async () => {
      closeAll();
      server.close();
      await once(server, 'close');
    },
  };
}

const REFUSAL_MAX_MS = 60_000;
const PAUSE_MS = 25;

/** Sequential requests with one key, until a request is refused. */
export interface RefusedLoad {
  /** Time of the last 200 response, by `performance.now`; 0 before the first 200 response. */
  acceptedAt(): number;
  /** Resolves when a request is refused. Rejects on any other status, or if no request is refused within a minute. */
  readonly refused: Promise<void>;
}

/**
 * Sends at most 40 requests per second, so that a key stays cached while it is revoked.
 * @param send sends a request and returns the response status @param refusal expected status of a refused request
 */
export function sendUntilRefused(send: () => Promise<number>, refusal: number): RefusedLoad {
  let acceptedAt = 0;
  const statuses = new Set<number>();
  const run = async () => {
    const end = performance.now() + REFUSAL_MAX_MS;
    do {
      const status = await send();
      statuses.add(status);
      if (status === 200) acceptedAt = performance.now();
      if (status === refusal) break;
      await delay(PAUSE_MS);
    } while (performance.now() < end);
    const seen = [...statuses].join(', ');
    if (seen !== `200, ${refusal}`) throw new Error(`expected 200 until ${refusal}, received ${seen}`);
  };
  return { acceptedAt: () => acceptedAt, refused: run() };
}
