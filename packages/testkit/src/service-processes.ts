import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { freePorts } from '@playline/infra/ports';
import { bareEnvironment } from './bare-environment.ts';
import { until } from './until.ts';

/** Processes of one service, to be stopped, killed and frozen by tests. */
export interface ServiceProcesses {
  /** Starts one more. Resolves when it says that it is ready. */
  start(settings?: Readonly<Record<string, string>>): Promise<ServiceProcess>;
  /** Kills every one that still runs. */
  close(): Promise<void>;
}

export interface ServiceProcess {
  readonly child: ChildProcess;
  /** Where its admin listener is. */
  readonly admin: string;
  /** Gives the exit code. */
  stop(signal: NodeJS.Signals): Promise<number | null>;
}

/**
 * @param main file of the service
 * @param environment what all of them are told; nothing of this process's own environment is
 */
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
      await until('the service is ready, or has ended', async () => ended !== null || (await isReady()));
      if (ended !== null) throw new Error(`${main} ended with ${ended} before it was ready`);
      return service;
    },
    close: async () => {
      await Promise.all([...running].map((service) => service.stop('SIGKILL')));
    },
  };
}
