import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { createKey } from '@playline/access-keys';
import { createMemoryKeyStore } from '@playline/access-keys/memory';
import { openRedisKeyStore } from '@playline/access-keys/redis';
import { applyTopics } from '@playline/infra/kafka';
import { freePorts } from '@playline/infra/local';
import { testStores, until } from '@playline/testkit';
import { type Client, createClient } from './client.ts';

/** The setting that the gateway under test runs with; key texts are made with it. */
const KEY_PREFIX = 'svcapik';

export interface ConformanceGateway extends ConformanceKeys {
  /** Ends the process. */
  close(): Promise<void>;
}

export interface ConformanceKeys {
  publishableKey: string;
  secretKey: string;
  /** Well formed, and nobody's. */
  unknownKey: string;
}

/** Starts a gateway process on the test stores with topics and an environment of its own. */
export async function startGateway(): Promise<Client & ConformanceGateway> {
  const stores = testStores();
  const tag = randomBytes(6).toString('hex');
  const prefix = `test-${tag}.`;
  await applyTopics({ brokers: stores.kafka, registry: stores.registry, prefix });
  const keys = await mintKeys(stores.redis, `test-${tag}`);
  const [httpPort, adminPort] = await freePorts(2);
  const gateway = spawn(process.execPath, ['services/gateway/src/main.ts'], {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: {
      ...process.env,
      LOG_LEVEL: 'error',
      KAFKA_BROKERS: stores.kafka.join(),
      SCHEMA_REGISTRY_URL: stores.registry,
      REDIS_URL: stores.redis,
      IDENTITY_PEPPER: randomBytes(32).toString('hex'),
      TOPIC_PREFIX: prefix,
      HTTP_HOST: '127.0.0.1',
      HTTP_PORT: String(httpPort),
      ADMIN_HOST: '127.0.0.1',
      ADMIN_PORT: String(adminPort),
    },
  });
  const ended = new Promise<void>((resolve) => gateway.once('exit', () => resolve()));
  const close = () => {
    gateway.kill('SIGTERM');
    return ended;
  };
  await until('the gateway is ready', async () => (await fetch(`http://127.0.0.1:${adminPort}/readyz`)).ok);
  return { ...createClient(`http://127.0.0.1:${httpPort}`, keys.publishableKey), ...keys, close };
}

async function mintKeys(redisUrl: string, projectId: string): Promise<ConformanceKeys> {
  const store = await openRedisKeyStore({ url: redisUrl });
  const owner = { projectId, environmentId: `${projectId}-production`, environment: 'production' } as const;
  try {
    const publishable = await createKey({ store, prefix: KEY_PREFIX }, { ...owner, kind: 'publishable' });
    const secret = await createKey({ store, prefix: KEY_PREFIX }, { ...owner, kind: 'secret' });
    const elsewhere = { store: createMemoryKeyStore(), prefix: KEY_PREFIX };
    const unknown = await createKey(elsewhere, { ...owner, kind: 'publishable' });
    return { publishableKey: publishable.key, secretKey: secret.key, unknownKey: unknown.key };
  } finally {
    await store.close();
  }
}
