import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { CHECKOUT } from '@playline/infra/local';
import { bareEnvironment } from '@playline/testkit';
import type { World } from './world.ts';

export interface OperateOptions {
  readonly settings?: Readonly<Record<string, string>>;
  /** Timeout in milliseconds; 0 for none. */
  readonly maxMs?: number;
}

const RUN_MAX_MS = 60_000;

export interface OperateResult {
  readonly code: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

export function operate(
  world: World,
  args: readonly string[],
  { settings = {}, maxMs = RUN_MAX_MS }: OperateOptions = {},
): Promise<OperateResult> {
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

/** Runs the operator's `verify`. @throws Error with the output if `verify` fails or reports a duplicate row */
export async function verify(world: World): Promise<void> {
  const settings = { REDIS_URL: world.stack.file.redis };
  const args = ['verify', '--group', world.groupOf('event-writer')];
  const { code, stdout, stderr } = await operate(world, args, { settings });
  if (code !== 0 || stdout.includes('more than one raw row'))
    throw new Error(`verify exited with ${code}:\n${stdout}${stderr}`);
}
