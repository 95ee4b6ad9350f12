import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { freePorts } from '@playline/infra/ports';
import { bareEnvironment } from './bare-environment.ts';
import { until } from './until.ts';

/** Processes of one service that tests stop, kill and freeze. */
export interface ServiceProcesses {
  /** Starts a process. Resolves when it is ready. */
  start(settings?: Readonly<Record<string, string>>): Promise<ServiceProcess>;
  /** Kills all running processes. */
  close(): Promise<void>;
}

export interface ServiceProcess {
  readonly child: ChildProcess;
  /** Address of the admin listener. */
  readonly admin: string;
  /** @returns the exit code */
  stop(signal: NodeJS.Signals): Promise<number | null>;
}

/** @param main file of the service @param environment of all processes; nothing else is inherited */
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

/** Below the timeout of a test. A busy machine needs more than 20 s to start a process. */
const START_MAX_MS = 50_000;

/** A process of an HTTP service. */
export interface HttpProcess {
  readonly child: ChildProcess;
  readonly url: string;
  readonly adminUrl: string;
  /** Standard output and error so far. */
  output(): string;
  /** Sends SIGTERM. @returns the exit code */
  close(): Promise<number | null>;
}

/**
 * Starts a service. Resolves when it answers requests.
 * @param environment settings besides the ports; nothing else is inherited
 * @throws Error with its output when it exits first
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
  const alive = until('the process is alive', async () => (await fetch(`${adminUrl}/livez`)).ok, START_MAX_MS);
  await Promise.race([alive, ended.then(([code]) => Promise.reject(new Error(`exited with ${code}: ${output}`)))]);
  await until('the service listens', async () => (await fetch(url)).status === 404);
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
