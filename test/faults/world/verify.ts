import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { CHECKOUT } from '@playline/infra/local';
import type { World } from './world.ts';

/** The command reads a log of seconds. */
const RUN_MAX_MS = 60_000;

/** Runs the operator's `verify` against the stores themselves. @throws Error with its table unless it ends with 0 */
export async function verify(world: World): Promise<void> {
  const { stack, deployment } = world;
  const { engine } = deployment;
  const env = {
    PATH: process.env.PATH ?? '',
    KAFKA_BROKERS: stack.file.kafka.join(','),
    SCHEMA_REGISTRY_URL: stack.file.registry,
    CLICKHOUSE_URL: engine.url,
    CLICKHOUSE_USER: engine.user,
    CLICKHOUSE_PASSWORD: engine.password,
    CLICKHOUSE_DATABASE: engine.database,
    TOPIC_PREFIX: deployment.topicPrefix,
    KAFKAJS_NO_PARTITIONER_WARNING: '1',
  };
  const main = join(CHECKOUT, 'services', 'operator', 'src', 'main.ts');
  const args = [main, 'verify', '--group', world.groupOf('event-writer')];
  await new Promise<void>((resolve, reject) => {
    execFile(process.execPath, args, { env, cwd: world.folder, timeout: RUN_MAX_MS }, (error, stdout, stderr) => {
      if (error === null) resolve();
      else reject(new Error(`verify ended with ${error.code ?? error.signal}:\n${stdout}${stderr}`));
    });
  });
}
