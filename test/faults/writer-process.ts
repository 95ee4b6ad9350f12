import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { freePorts } from '@playline/infra/ports';
import { bareEnvironment } from '@playline/testkit';
import { openClickHouseProxy } from './writer-clickhouse-proxy.ts';
import { openKafkaProxy } from './writer-kafka-proxy.ts';

export type ProxiedProcess = Awaited<ReturnType<typeof startProxiedProcess>>;

export interface ProxiedProcessOptions {
  readonly file: string;
  readonly args?: readonly string[];
  readonly brokers: readonly string[];
  readonly clickhouse: string;
  readonly environment: Readonly<Record<string, string>>;
}

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** A frozen process does not respond, so requests need a timeout. */
const REQUEST_MAX_MS = 2_000;

export async function startProxiedProcess(options: ProxiedProcessOptions) {
  const [kafka, clickhouse, [adminPort]] = await Promise.all([
    openKafkaProxy(options.brokers),
    openClickHouseProxy(options.clickhouse),
    freePorts(1),
  ]);
  const child = spawn(process.execPath, [options.file, ...(options.args ?? [])], {
    cwd: ROOT,
    env: {
      ...bareEnvironment(),
      ...options.environment,
      KAFKA_BROKERS: kafka.brokers.join(','),
      CLICKHOUSE_URL: clickhouse.url,
      ADMIN_PORT: String(adminPort),
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const hasChildExited = () => child.exitCode !== null || child.signalCode !== null;
  const end = async (signal: NodeJS.Signals) => {
    if (hasChildExited()) return child.exitCode;
    const exit = once(child, 'exit');
    child.kill(signal);
    return (await exit)[0] as number | null;
  };
  const get = (path: string) =>
    fetch(`http://127.0.0.1:${adminPort}/${path}`, { signal: AbortSignal.timeout(REQUEST_MAX_MS) });
  // The process must not outlive the test process.
  const atExit = () => child.kill('SIGKILL');
  process.once('exit', atExit);
  child.once('exit', () => process.removeListener('exit', atExit));
  return {
    kafka,
    clickhouse,
    get hasExited(): boolean {
      return hasChildExited();
    },
    isReady: async () => (await get('readyz').catch(() => null))?.ok ?? false,
    metrics: async () => await (await get('metrics')).text(),
    signal: (signal: NodeJS.Signals) => void child.kill(signal),
    /** Kills the process. The proxies stay open and forward delayed requests. */
    kill: async () => void (await end('SIGKILL')),
    /** @returns the exit code */
    stop: () => end('SIGTERM'),
    close: async () => {
      await end('SIGKILL');
      await Promise.all([kafka.close(), clickhouse.close()]);
    },
  };
}
