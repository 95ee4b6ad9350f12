import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { freePorts } from '@playline/infra/ports';
import { bareEnvironment } from '@playline/testkit';
import { type ClickHouseGate, openClickHouseGate } from './writer-clickhouse-gate.ts';
import { type KafkaGate, openKafkaGate } from './writer-kafka-gate.ts';

/** A service as a separate process that reaches Kafka and ClickHouse through its own gates. */
export interface GatedProcess {
  readonly kafka: KafkaGate;
  readonly clickhouse: ClickHouseGate;
  /** Whether it has ended, for any reason. */
  readonly gone: boolean;
  isReady(): Promise<boolean>;
  metrics(): Promise<string>;
  signal(signal: NodeJS.Signals): void;
  /** Kills it immediately. Resolves when it has ended. Its gates stay open, with everything that they hold. */
  kill(): Promise<void>;
  /** Sends SIGTERM. @returns its exit code */
  stop(): Promise<number | null>;
  /** Kills it if it still runs, and closes the gates. */
  close(): Promise<void>;
}

export interface GatedProcessOptions {
  /** Path from the top of the repository. */
  readonly file: string;
  readonly args?: readonly string[];
  /** The brokers behind the gate. */
  readonly brokers: readonly string[];
  readonly clickhouse: string;
  /** All other settings. */
  readonly environment: Readonly<Record<string, string>>;
}

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** Bound of one request, because a frozen process does not answer. */
const REQUEST_MAX_MS = 2_000;

export async function startGatedProcess(options: GatedProcessOptions): Promise<GatedProcess> {
  const [kafka, clickhouse, [adminPort]] = await Promise.all([
    openKafkaGate(options.brokers),
    openClickHouseGate(options.clickhouse),
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
  const isGone = () => child.exitCode !== null || child.signalCode !== null;
  const end = async (signal: NodeJS.Signals) => {
    if (isGone()) return child.exitCode;
    const exit = once(child, 'exit');
    child.kill(signal);
    return (await exit)[0] as number | null;
  };
  const get = (path: string) =>
    fetch(`http://127.0.0.1:${adminPort}/${path}`, { signal: AbortSignal.timeout(REQUEST_MAX_MS) });
  // These processes must not outlive the test process.
  const atExit = () => child.kill('SIGKILL');
  process.once('exit', atExit);
  child.once('exit', () => process.removeListener('exit', atExit));
  return {
    kafka,
    clickhouse,
    get gone() {
      return isGone();
    },
    isReady: async () => (await get('readyz').catch(() => null))?.ok ?? false,
    metrics: async () => await (await get('metrics')).text(),
    signal: (signal) => void child.kill(signal),
    kill: async () => void (await end('SIGKILL')),
    stop: () => end('SIGTERM'),
    close: async () => {
      await end('SIGKILL');
      await Promise.all([kafka.close(), clickhouse.close()]);
    },
  };
}
