import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { createKey, type NewKey } from '@playline/access-keys';
import { openRedisKeyStore, type RedisKeyStore } from '@playline/access-keys/redis';
import { TOPICS } from '@playline/contracts';
import { applyTopics, dropTopics } from '@playline/infra/kafka';
import { freePorts } from '@playline/infra/local';
import { readTopic } from '@playline/stream/kafka';
import { bareEnvironment, testStores, until } from '@playline/testkit';
import { Redis } from 'ioredis';
import { KEY_HEADER, MESSAGES } from './open-gateway.ts';

/** Less than the time limit of a test. A busy machine has taken more than 20 s to start a process. */
const START_MAX_MS = 50_000;
const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url));

/** Topics, schemas and an environment with its key in the real stores. */
export interface RealStores {
  readonly topicPrefix: string;
  readonly store: RedisKeyStore;
  readonly owner: NewKey;
  readonly key: string;
  /** Reads the values of all message records in the log so far. */
  readLog(): Promise<Buffer[]>;
  close(): Promise<void>;
}

export async function openRealStores(): Promise<RealStores> {
  const stores = testStores();
  const tag = `test-${randomBytes(4).toString('hex')}`;
  const topicPrefix = `${tag}.`;
  const topics = { brokers: stores.kafka, registry: stores.registry, prefix: topicPrefix };
  await applyTopics(topics);
  const store = await openRedisKeyStore({ url: stores.redis });
  const owner: NewKey = { projectId: tag, environmentId: tag, environment: 'production', kind: 'publishable' };
  const { key } = await createKey({ store, prefix: 'svcapik' }, owner);
  return {
    topicPrefix,
    store,
    owner,
    key,
    readLog: async () => {
      const records = await readTopic({ brokers: stores.kafka, topic: topicPrefix + TOPICS.messages.name });
      return records.map(({ value }) => value!);
    },
    close: async () => {
      const hashes = (await store.list(tag)).map(({ hash }) => `k:${hash}`);
      await store.close();
      const redis = new Redis(stores.redis);
      await redis.del(...hashes, `k:environment:${tag}`, `k:project:${tag}`);
      redis.disconnect();
      await dropTopics(topics);
    },
  };
}

/** A gateway as its own process. */
export interface GatewayProcess {
  readonly child: ChildProcess;
  readonly url: string;
  readonly adminUrl: string;
  post(key: string, body: unknown): Promise<Response>;
  /** Everything that it has written to its standard output and error. */
  output(): string;
  /** Sends SIGTERM and waits for the end of the process. @returns its exit code */
  close(): Promise<number | null>;
}

export async function openProcess(
  topicPrefix: string,
  environment: Record<string, string> = {},
): Promise<GatewayProcess> {
  const stores = testStores();
  const [httpPort, adminPort] = await freePorts(2);
  const child = spawn(process.execPath, [MAIN], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...bareEnvironment(),
      LOG_LEVEL: 'error',
      KAFKA_BROKERS: stores.kafka.join(),
      SCHEMA_REGISTRY_URL: stores.registry,
      REDIS_URL: stores.redis,
      IDENTITY_PEPPER: randomBytes(32).toString('hex'),
      TOPIC_PREFIX: topicPrefix,
      HTTP_PORT: String(httpPort),
      ADMIN_PORT: String(adminPort),
      ...environment,
    },
  });
  const ended = once(child, 'exit') as Promise<[number | null]>;
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  child.stderr?.pipe(process.stderr, { end: false });
  const [url, adminUrl] = [`http://127.0.0.1:${httpPort}`, `http://127.0.0.1:${adminPort}`];
  const alive = until('the process is alive', async () => (await fetch(`${adminUrl}/livez`)).ok, START_MAX_MS);
  await Promise.race([alive, ended.then(([code]) => Promise.reject(new Error(`ended with ${code}: ${output}`)))]);
  await until('it listens', async () => (await fetch(url)).status === 404);
  const post = (key: string, body: unknown) =>
    fetch(url + MESSAGES, {
      method: 'POST',
      headers: { 'content-type': 'application/json', [KEY_HEADER]: key },
      body: JSON.stringify(body),
    });
  const close = async () => {
    if (child.exitCode === null) child.kill('SIGTERM');
    return (await ended)[0];
  };
  return { child, url, adminUrl, post, output: () => output, close };
}
