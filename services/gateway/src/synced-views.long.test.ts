import {
  createRecordLog,
  createRecordStore,
  RATE_LIMIT_KEYS,
  type RateLimitKeyRecord,
  ViewFault,
} from '@playline/access-keys';
import { openRedisRecords, type RedisRecordView } from '@playline/access-keys/redis';
import { createSchemaRegistry, openLogReader, openProducer } from '@playline/stream/kafka';
import { testStores, until } from '@playline/testkit';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { type KeyStores, openKeyStores } from './test/key-stores.ts';
import { openProcess } from './test/open-process.ts';

const kind = RATE_LIMIT_KEYS;
let stores: KeyStores;
let view: RedisRecordView<RateLimitKeyRecord>;
beforeAll(async () => {
  stores = await openKeyStores();
  view = await openRedisRecords(kind, { url: stores.redisUrl });
});
afterAll(async () => {
  await view.close();
  await stores.close();
});

async function open() {
  const gateway = await openProcess(stores.topicPrefix, { REDIS_URL: stores.redisUrl });
  onTestFinished(async () => void (await gateway.close()));
}

async function create(partner: string): Promise<RateLimitKeyRecord> {
  const texts = ['create', '--kind', 'rate-limit', '--partner', partner, '--calls', '5', '--json'];
  return JSON.parse(await stores.keys(...texts));
}

/** Partners of the live keys; null while the view cannot answer. */
async function partners(): Promise<string[] | null> {
  try {
    const { records } = await view.readSince(null);
    return records?.filter(({ revokedAt }) => revokedAt === null).map(({ partner }) => partner) ?? [];
  } catch {
    return null;
  }
}

/** Revokes a key as a command does that dies after writing the log and before writing Redis. */
async function revokeHalf(keyId: string): Promise<void> {
  const { kafka: brokers, registry } = testStores();
  const topic = stores.topicPrefix + kind.topic;
  const schemas = createSchemaRegistry({ url: registry });
  const producer = await openProducer({ brokers, clientId: 'test', topics: [topic] });
  const reader = openLogReader({ brokers, clientId: 'test' });
  const log = createRecordLog({
    kind,
    schemaOf: schemas.schemaOf,
    schemaId: await schemas.idOf(`${topic}-value`, kind.codec.schema),
    bounds: () => reader.bounds(topic),
    read: (range) => reader.read({ topic, ...range }),
    send: (record) => producer.sendForOffset({ topic, ...record }),
  });
  const dying = { ...view, update: () => Promise.reject(new Error('killed')) };
  const store = createRecordStore({ view: dying, log }, { changedBy: 'ada', requestId: 'r' });
  const revoked = store.change((records) => ({ ...records.find((each) => each.keyId === keyId)!, revokedAt: 1 }));
  await expect(revoked).rejects.toThrow(ViewFault);
  await producer.close();
  await reader.close();
}

it('a running gateway brings records of access back into a Redis that was emptied', async () => {
  await create('Acme');
  await open();
  const redis = new Redis(stores.redisUrl);
  onTestFinished(() => redis.disconnect());
  await redis.flushdb();
  await until('the keys are back', async () => (await partners())?.includes('Acme') === true);
});

it('a running gateway applies a change whose command died between log and Redis', async () => {
  const { keyId } = await create('Beta');
  await open();
  await revokeHalf(keyId);
  await until('the key has ended', async () => (await partners())?.includes('Beta') === false);
});
