import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { CHECKOUT } from '@playline/infra/local';
import { bareEnvironment } from '@playline/testkit';
import type { World } from './world.ts';

/** What a run of a command has of its own. */
export interface OperateOptions {
  /** Settings that it needs besides those of log and tables. */
  readonly settings?: Readonly<Record<string, string>>;
  /** It is ended after so many milliseconds; 0: never. */
  readonly maxMs?: number;
}

/** The command reads a log of seconds. */
const RUN_MAX_MS = 60_000;

/** What a command of the operator answered. */
export interface Operated {
  /** Exit code, or the signal that ended it. */
  readonly code: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command of the operator against the stores themselves, not the wires before them. */
export function operate(
  world: World,
  args: readonly string[],
  { settings = {}, maxMs = RUN_MAX_MS }: OperateOptions = {},
): Promise<Operated> {
  const { stack, deployment } = world;
  const { engine } = deployment;
  const env = {
    ...bareEnvironment(),
    KAFKA_BROKERS: stack.file.kafka.join(','),
    SCHEMA_REGISTRY_URL: stack.file.registry,
    CLICKHOUSE_URL: engine.url,
    CLICKHOUSE_USER: engine.user,
    CLICKHOUSE_PASSWORD: engine.password,
    CLICKHOUSE_DATABASE: engine.database,
    TOPIC_PREFIX: deployment.topicPrefix,
    KAFKAJS_NO_PARTITIONER_WARNING: '1',
    ...settings,
  };
  const main = join(CHECKOUT, 'services', 'operator', 'src', 'main.ts');
  return new Promise((resolve) => {
    const options = { env, cwd: world.folder, timeout: maxMs };
    execFile(process.execPath, [main, ...args], options, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : (error.code ?? error.signal ?? 1), stdout, stderr }),
    );
  });
}
