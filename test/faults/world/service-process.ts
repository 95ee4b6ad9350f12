import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CHECKOUT } from '@playline/infra/local';
import { bareEnvironment } from '@playline/testkit';
import { type ServiceEntry, serviceOf } from '../../../infra/local/services.ts';
import { waitFor } from './wait.ts';

export type ServiceName = 'gateway' | 'identity-linker' | 'event-writer' | 'eraser';

export type ServiceProcess = Awaited<ReturnType<typeof openServiceProcess>>;

export interface ServiceStart {
  service: ServiceName;
  name: string;
  /** All environment variables, except for PATH and the ports. */
  environment: Record<string, string>;
  logFile: string;
  ports: { http: number; admin: number };
}

/** Longer than a service's drain timeout of 25 s. */
const CLOSE_MAX_MS = 28_000;
const READY_MAX_MS = 90_000;
const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

function spawnLogged({ service, environment, logFile }: ServiceStart, ports: Record<string, string>): ChildProcess {
  mkdirSync(dirname(logFile), { recursive: true });
  const log = openSync(logFile, 'a');
  // Uses the local stack's Node and allocator options.
  const entry: ServiceEntry = serviceOf(service);
  const base = { ...bareEnvironment(), ADMIN_HOST: '127.0.0.1', HTTP_HOST: '127.0.0.1' };
  const env = { ...base, ...entry.environment, ...environment, ...ports };
  const args = [...(entry.nodeOptions ?? []), join(CHECKOUT, 'services', service, 'src', 'main.ts')];
  const child = spawn(process.execPath, args, { cwd: CHECKOUT, env, stdio: ['ignore', log, log] });
  closeSync(log);
  running.add(child);
  return child;
}

/** Starts a service process without waiting until the service is ready. */
export async function openServiceProcess(start: ServiceStart) {
  const { service, name, logFile, ports } = start;
  const { http, admin } = ports;
  const child = spawnLogged(start, { HTTP_PORT: String(http), ADMIN_PORT: String(admin) });
  if (child.pid === undefined) throw new Error(`${name} could not be started`);
  const exited = new Promise<number | NodeJS.Signals>((resolve) =>
    child.once('exit', (code, signal) => {
      running.delete(child);
      resolve(code ?? signal ?? 1);
    }),
  );
  const adminUrl = `http://127.0.0.1:${admin}`;
  const isReady = async () => {
    try {
      const init = { headers: { connection: 'close' }, signal: AbortSignal.timeout(3_000) };
      const response = await fetch(`${adminUrl}/readyz`, init);
      await response.arrayBuffer();
      return response.ok;
    } catch {
      return false;
    }
  };
  return {
    service,
    name,
    pid: child.pid,
    url: service === 'gateway' ? `http://127.0.0.1:${http}` : '',
    adminUrl,
    logFile,
    exited,
    get isAlive(): boolean {
      return running.has(child);
    },
    signal: (signal: NodeJS.Signals) => void child.kill(signal),
    residentBytes: () => Number(/^VmRSS:\s+(\d+) kB$/m.exec(statusOf(child.pid!))?.[1]) * 1024,
    isReady,
    /** Waits until the service is ready. @throws Error with the end of the log if the process exits */
    whenReady: async () => {
      await waitFor(`${name} is ready`, async () => (await isReady()) || !running.has(child), READY_MAX_MS);
      if (!running.has(child))
        throw new Error(`${name} exited (${await exited}):\n${readFileSync(logFile, 'utf8').slice(-2_000)}`);
    },
    /** Sends SIGTERM, then SIGKILL after a timeout. Resolves when the process has exited. */
    close: async () => {
      if (!running.has(child)) return;
      child.kill('SIGTERM');
      child.kill('SIGCONT');
      const timer = setTimeout(() => child.kill('SIGKILL'), CLOSE_MAX_MS);
      await exited;
      clearTimeout(timer);
    },
  };
}

const statusOf = (pid: number) => readFileSync(`/proc/${pid}/status`, 'utf8');

export const isStopped = (pid: number): boolean => /^State:\s+T/m.test(statusOf(pid));
