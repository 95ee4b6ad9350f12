import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { ACCESS_KEYS, createKey, createKeyText, refreshKey } from '@playline/access-keys';
import { openRedisRecords } from '@playline/access-keys/redis';
import { createUnloggedStore } from '@playline/access-keys/test';
import { applyTopics, dropTopics } from '@playline/infra/kafka';
import { freePorts, nodeOptionsOf } from '@playline/infra/local';
import { openRedisPeople } from '@playline/people/redis';
import {
  type RedisTarget,
  type Stores,
  TEST_PARTITIONS,
  testRedis,
  testStores,
  toRedisSettings,
  until,
} from '@playline/testkit';
import { type Client, createClient } from './client.ts';

/** The key prefix of the gateway and of the test keys. */
const KEY_PREFIX = 'svcapik';

/** Maximum time until a gateway is ready, on a machine that runs many tests concurrently. */
const READY_MAX_MS = 90_000;
/** Timeout of hooks that start a gateway. */
export const START_MAX_MS = 150_000;

export interface ConformanceGateway extends ConformanceKeys {
  /** The environment that `publishableKey` and `secretKey` belong to. */
  environmentId: string;
  /** Prefix of the gateway's topic names. */
  topicPrefix: string;
  /** Stops the process and deletes its topics. */
  close(): Promise<void>;
}

export interface ConformanceKeys {
  publishableKey: string;
  secretKey: string;
  /** A well-formed key that does not exist. */
  unknownKey: string;
  /** A valid publishable key of another environment. */
  otherPublishableKey: string;
  /** Invalid keys of the other environment, which were replaced before the gateway started. */
  replacedPublishableKey: string;
  replacedSecretKey: string;
}

interface GatewayStores extends Pick<Stores, 'kafka' | 'registry'> {
  readonly redis: RedisTarget;
}

// Starts a gateway process with the test stores and separate topics and environments. `settings` are environment
// variables that override the defaults.
export async function startGateway(
  settings: Record<string, string> = {},
  stores: GatewayStores = { ...testStores(), redis: testRedis() },
): Promise<Client & ConformanceGateway> {
  const tag = randomBytes(6).toString('hex');
  const prefix = `test-${tag}.`;
  const topics = { brokers: stores.kafka, registry: stores.registry, prefix, partitions: TEST_PARTITIONS };
  const [keys] = await Promise.all([
    createKeys(stores.redis, `test-${tag}`),
    initIdentity(stores.redis),
    applyTopics(topics),
  ]);
  const names = { environmentId: `test-${tag}-production`, topicPrefix: prefix };
  const [httpPort, adminPort] = await freePorts(2);
  const gateway = spawn(process.execPath, [...nodeOptionsOf('gateway'), 'services/gateway/src/main.ts'], {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: {
      ...process.env,
      LOG_LEVEL: 'error',
      // Brokers may be slow on a busy machine.
      PUBLISH_DEADLINE_MS: '20000',
      KAFKA_BROKERS: stores.kafka.join(),
      SCHEMA_REGISTRY_URL: stores.registry,
      ...toRedisSettings(stores.redis),
      IDENTITY_PEPPER: randomBytes(32).toString('hex'),
      TOPIC_PREFIX: prefix,
      HTTP_HOST: '127.0.0.1',
      HTTP_PORT: String(httpPort),
      ADMIN_HOST: '127.0.0.1',
      ADMIN_PORT: String(adminPort),
      ...settings,
    },
  });
  const exited = new Promise<void>((resolve) => gateway.once('exit', () => resolve()));
  const close = async () => {
    gateway.kill('SIGTERM');
    await exited;
    await dropTopics(topics);
  };
  const isReady = async () => (await fetch(`http://127.0.0.1:${adminPort}/readyz`)).ok;
  await until('the gateway is ready', isReady, READY_MAX_MS).catch(async (fault) => {
    await close();
    throw fault;
  });
  return { ...createClient(`http://127.0.0.1:${httpPort}`, keys.publishableKey), ...keys, ...names, close };
}

async function createKeys(redis: RedisTarget, projectId: string): Promise<ConformanceKeys> {
  const view = await openRedisRecords(ACCESS_KEYS, redis);
  const store = createUnloggedStore(view);
  const owner = { projectId, environmentId: `${projectId}-production`, environment: 'production' } as const;
  try {
    const publishable = await createKey({ store, prefix: KEY_PREFIX }, { ...owner, kind: 'publishable' });
    const secret = await createKey({ store, prefix: KEY_PREFIX }, { ...owner, kind: 'secret' });
    return {
      publishableKey: publishable.key,
      secretKey: secret.key,
      unknownKey: createKeyText(KEY_PREFIX, { kind: 'publishable', environment: 'production' }),
      ...(await createOtherKeys({ store, prefix: KEY_PREFIX }, projectId)),
    };
  } finally {
    await view.close();
  }
}

async function createOtherKeys(context: Parameters<typeof createKey>[0], projectId: string) {
  const owner = { projectId, environmentId: `${projectId}-development`, environment: 'development' } as const;
  const { key: replacedPublishableKey } = await createKey(context, { ...owner, kind: 'publishable' });
  const { key: replacedSecretKey } = await createKey(context, { ...owner, kind: 'secret' });
  const other = await refreshKey(context, { ...owner, kind: 'publishable' });
  await refreshKey(context, { ...owner, kind: 'secret' });
  return { otherPublishableKey: other.key, replacedPublishableKey, replacedSecretKey };
}

/** Creates the identity epoch in Redis, which consents and erasures require, unless an epoch exists. */
async function initIdentity(redis: RedisTarget): Promise<void> {
  const people = await openRedisPeople(redis);
  await until('the identity graph has an epoch', () => people.rebuild.mintEpoch());
  await people.close();
}
