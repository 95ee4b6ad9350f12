import { type ChildProcess, execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { applyTopics, dropTopics } from '@playline/infra/kafka';
import { bareEnvironment, openRedisDatabase, TEST_PARTITIONS, testStores } from '@playline/testkit';

const OPERATOR = fileURLToPath(new URL('../../../operator/src/main.ts', import.meta.url));

/** Topics, a Redis database (new or provided by the test), and the operator's key commands as processes. */
export interface KeyStores {
  readonly topicPrefix: string;
  /** URL of Redis with a login that may do everything except publish and subscribe. */
  readonly noPubSubRedisUrl: string;
  readonly redisUrl: string;
  /**
   * Runs `operator keys …` for the demo project. Resolves with the first line of output as soon as it is printed.
   * @throws Error with the exit code if the command prints nothing
   */
  keys(...args: string[]): Promise<string>;
  /** Runs `operator projects …` like `keys`. */
  projects(...args: string[]): Promise<string>;
  close(): Promise<void>;
}

export interface KeyStoresOptions {
  readonly redisUrl?: string;
  /** Additional settings for the commands. */
  readonly settings?: Readonly<Record<string, string>>;
}

export async function openKeyStores(options: KeyStoresOptions = {}): Promise<KeyStores> {
  const { kafka, registry } = testStores();
  const tag = `test-${randomBytes(4).toString('hex')}`;
  const target = { brokers: kafka, registry, prefix: `${tag}.`, partitions: TEST_PARTITIONS };
  await applyTopics(target);
  const redis = await openRedisDatabase();
  await redis.client.call('ACL', 'SETUSER', tag, 'on', `>${tag}`, '~*', '&*', '+@all', '-@pubsub');
  const noPubSub = new URL(redis.url);
  noPubSub.username = tag;
  noPubSub.password = tag;
  const folder = mkdtempSync(join(tmpdir(), `${tag}-`));
  const running: ChildProcess[] = [];
  const env = {
    ...bareEnvironment(),
    KAFKA_BROKERS: kafka.join(),
    SCHEMA_REGISTRY_URL: registry,
    REDIS_URL: options.redisUrl ?? redis.url,
    TOPIC_PREFIX: target.prefix,
    ...options.settings,
  };
  const runOperator = (command: string, args: readonly string[]) => {
    const child = execFile(process.execPath, [OPERATOR, command, ...args], { cwd: folder, env });
    running.push(child);
    return run(child);
  };
  return {
    topicPrefix: target.prefix,
    redisUrl: env.REDIS_URL,
    noPubSubRedisUrl: noPubSub.href,
    keys: (...args) => runOperator('keys', args),
    projects: (...args) => runOperator('projects', args),
    close: async () => {
      for (const child of running) if (child.exitCode === null) await once(child, 'close');
      rmSync(folder, { recursive: true });
      await redis.client.call('ACL', 'DELUSER', tag);
      await redis.close();
      await dropTopics(target);
    },
  };
}

function run(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let output = '';
    let errors = '';
    child.stderr?.on('data', (text) => (errors += text));
    child.stdout?.on('data', (text) => {
      output += text;
      if (output.includes('\n')) resolve(output.trim());
    });
    child.once('close', (code) => reject(new Error(`operator exited with ${code}: ${errors}`)));
  });
}
