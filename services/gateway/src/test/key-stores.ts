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

/** Topics, a Redis database of its own or the one of the test, and the operator's key commands as processes. */
export interface KeyStores {
  readonly topicPrefix: string;
  /** Address with the login of a user who may do everything except publish and subscribe. */
  readonly mutedRedisUrl: string;
  readonly redisUrl: string;
  /**
   * Runs `operator keys …` for the demo project. Resolves with its first line as soon as it is printed.
   * @throws Error with its exit code when it prints none
   */
  keys(...texts: string[]): Promise<string>;
  /** Runs `operator projects …`, likewise. */
  projects(...texts: string[]): Promise<string>;
  close(): Promise<void>;
}

export async function openKeyStores(own: { redisUrl?: string } = {}): Promise<KeyStores> {
  const { kafka, registry } = testStores();
  const tag = `test-${randomBytes(4).toString('hex')}`;
  const target = { brokers: kafka, registry, prefix: `${tag}.`, partitions: TEST_PARTITIONS };
  await applyTopics(target);
  const redis = await openRedisDatabase();
  await redis.client.call('ACL', 'SETUSER', tag, 'on', `>${tag}`, '~*', '&*', '+@all', '-@pubsub');
  const muted = new URL(redis.url);
  muted.username = tag;
  muted.password = tag;
  const folder = mkdtempSync(join(tmpdir(), `${tag}-`));
  const running: ChildProcess[] = [];
  const env = {
    ...bareEnvironment(),
    KAFKA_BROKERS: kafka.join(),
    SCHEMA_REGISTRY_URL: registry,
    REDIS_URL: own.redisUrl ?? redis.url,
    TOPIC_PREFIX: target.prefix,
  };
  const operate = (command: string, texts: readonly string[]) => {
    const child = execFile(process.execPath, [OPERATOR, command, ...texts], { cwd: folder, env });
    running.push(child);
    return run(child);
  };
  return {
    topicPrefix: target.prefix,
    redisUrl: env.REDIS_URL,
    mutedRedisUrl: muted.href,
    keys: (...texts) => operate('keys', texts),
    projects: (...texts) => operate('projects', texts),
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
    let printed = '';
    let complaints = '';
    child.stderr?.on('data', (text) => (complaints += text));
    child.stdout?.on('data', (text) => {
      printed += text;
      if (printed.includes('\n')) resolve(printed.trim());
    });
    child.once('close', (code) => reject(new Error(`operator ended with ${code}: ${complaints}`)));
  });
}
