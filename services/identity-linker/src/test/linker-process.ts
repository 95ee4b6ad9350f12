import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { freePorts } from '@playline/infra/ports';
import { bareEnvironment, testStores, until } from '@playline/testkit';
import type { RealStores } from './open-real-stores.ts';

const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url));
/** Short, because partitions of a killed linker wait for it, but long enough for heartbeats on a busy machine. */
const SESSION_TIMEOUT_MS = 3_000;

/** A linker as its own process. */
export interface LinkerProcess {
  readonly adminUrl: string;
  /** Stops the process and waits for its end. @returns its exit code */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

export async function startProcess(
  stores: RealStores,
  environment: Record<string, string> = {},
): Promise<LinkerProcess> {
  const { kafka, registry, redis } = testStores();
  const [adminPort] = await freePorts(1);
  const child = spawn(process.execPath, [MAIN], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      ...bareEnvironment(),
      LOG_LEVEL: 'error',
      KAFKA_BROKERS: kafka.join(),
      SCHEMA_REGISTRY_URL: registry,
      REDIS_URL: redis,
      IDENTITY_PEPPER: '05'.repeat(32),
      TOPIC_PREFIX: stores.topicPrefix,
      CONSUMER_GROUP: stores.group,
      SESSION_TIMEOUT_MS: String(SESSION_TIMEOUT_MS),
      ADMIN_PORT: String(adminPort),
      ...environment,
    },
  });
  const ended = once(child, 'exit') as Promise<[number | null]>;
  const adminUrl = `http://127.0.0.1:${adminPort}`;
  await until('the linker lives', async () => (await fetch(`${adminUrl}/livez`)).ok);
  const stop = async (signal: NodeJS.Signals = 'SIGTERM') => {
    if (child.exitCode === null) child.kill(signal);
    return (await ended)[0];
  };
  return { adminUrl, stop };
}
