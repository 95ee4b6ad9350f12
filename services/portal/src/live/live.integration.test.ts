import { randomBytes } from 'node:crypto';
import { frameRecord, type MessageRecord, messageRecordCodec, TOPICS } from '@playline/contracts';
import { createLogger } from '@playline/runtime';
import { createQueryRows } from '@playline/stores';
import type { Consumer, Producer } from '@playline/stream';
import { createSchemaRegistry, openLogReader, openProducer, openRecordConsumer } from '@playline/stream/kafka';
import { messageRecordOf, type OwnStores, openOwnStores, testStores, until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { NO_FILTER } from './filter.ts';
import { type LiveHub, openLive } from './index.ts';
import { collect } from './test/live-world.ts';

const WRITER_GROUP = 'live-test-writer';
const environmentId = 'live-test';
/** Number of messages, sent one after another. Each waits up to half a second for a poll. */
const MESSAGE_COUNT = 3;
const ada = randomBytes(16);

let stores: OwnStores;
let producer: Producer;
let hub: LiveHub;
let writer: Consumer | undefined;
beforeAll(async () => {
  stores = await openOwnStores();
  const { kafka: brokers, registry } = testStores();
  const [messages, rejections] = [stores.prefix + TOPICS.messages.name, stores.prefix + TOPICS.rejections.name];
  producer = await openProducer({ brokers, clientId: 'test', topics: [messages, rejections, `${messages}.dead`] });
  await until('the producer is ready', () => producer.ready());
  const {
    CLICKHOUSE_URL: url,
    CLICKHOUSE_USER: user,
    CLICKHOUSE_PASSWORD: password,
    CLICKHOUSE_DATABASE: database,
  } = stores.environment as Record<string, string>;
  hub = openLive({
    log: openLogReader({ brokers, clientId: 'live-test' }),
    schemaOf: createSchemaRegistry({ url: registry }).schemaOf,
    topicPrefix: stores.prefix,
    writerGroup: WRITER_GROUP,
    query: createQueryRows({ url: url!, user: user!, password: password!, database: database! }),
    logger: createLogger({ service: 'test', level: 'silent' }),
  });
});
afterAll(async () => {
  await hub?.close();
  await writer?.close();
  await producer?.close();
  await stores?.close();
});

const send = async (eventName: string, changes: Partial<MessageRecord> = {}) => {
  const topic = stores.prefix + TOPICS.messages.name;
  const now = Date.now();
  const record = messageRecordOf(eventName, { environmentId, receivedAt: now, eventTime: now, ...changes });
  const value = frameRecord(stores.schemaIdOf(topic), messageRecordCodec.encode(record));
  return { topic, value, position: await producer.sendForOffset({ topic, key: null, value }) };
};

async function subscribe() {
  const request = { environmentId, filter: NO_FILTER, shouldMask: false, isStillAllowed: () => true };
  const client = collect(hub.subscribe(request));
  await until('the hub polls', () => client.status()?.isWatching === true);
  return client;
}

it('a message appears within two seconds, and its outcome is "stored" after the event writer commits it', async () => {
  const client = await subscribe();
  for (let round = 0; round < MESSAGE_COUNT; round++) {
    await send(`round ${round}`);
    const sentMs = performance.now();
    await until('the message arrives', () => client.ofKind('message').some(({ name }) => name === `round ${round}`));
    expect(performance.now() - sentMs).toBeLessThan(2_000);
  }
  expect(client.ofKind('outcome')).toEqual([]);
  writer = await openRecordConsumer({
    brokers: testStores().kafka,
    groupId: WRITER_GROUP,
    topics: [stores.prefix + TOPICS.messages.name],
    sessionTimeoutMs: 10_000,
    onBatch: async () => {},
  });
  await until(
    'all messages are stored',
    () => client.ofKind('outcome').filter(({ outcome }) => outcome === 'stored').length === MESSAGE_COUNT,
  );
  client.subscriber.close();
});

it('a displayed message is fenced within three seconds after its person is erased', async () => {
  const client = await subscribe();
  await send('first event', { userKey: ada, userId: 'ada' });
  await until('the message arrives', () => client.ofKind('message').length > 0);
  const cutoffAt = new Date(Date.now() + 1_000).toISOString().replace('T', ' ').replace('Z', '');
  await stores.query(
    `INSERT INTO erasure_fences (environment_id, identity_key, cutoff_at, erasure_id)
       VALUES ('${environmentId}', unhex('${ada.toString('hex')}'), '${cutoffAt}', generateUUIDv4())`,
  );
  const sinceMs = performance.now();
  await until('the message is fenced', () => client.ofKind('outcome').some(({ outcome }) => outcome === 'fenced'));
  expect(performance.now() - sinceMs).toBeLessThan(3_000);
  await send('second event', { userKey: ada, userId: 'ada', eventTime: 1 });
  await until('the second message arrives without content', () =>
    client.ofKind('message').some(({ outcome }) => outcome === 'fenced'),
  );
  expect(JSON.stringify(client.events)).not.toContain('second event');
  client.subscriber.close();
});
