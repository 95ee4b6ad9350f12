import { randomBytes } from 'node:crypto';
import { frameRecord, type MessageRecord, messageRecordCodec, rejectionCodec, TOPICS } from '@playline/contracts';
import { createLogger } from '@playline/runtime';
import { createQueryRows } from '@playline/stores';
import type { Consumer, Producer } from '@playline/stream';
import { createSchemaRegistry, openLogReader, openProducer, openRecordConsumer } from '@playline/stream/kafka';
import { messageRecordOf, type OwnStores, openOwnStores, testStores, until } from '@playline/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NO_FILTER } from './filter.ts';
import { type LiveHub, openLive } from './index.ts';
import { collect } from './test/live-world.ts';

const WRITER = 'live-test-writer';
const environmentId = 'live-test';
/** Messages, one after the other, each of which waits for a poll of half a second. */
const ROUNDS = 3;
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
    writerGroup: WRITER,
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
  return { topic, value, place: await producer.sendForOffset({ topic, key: null, value }) };
};

describe('live messages on real stores', () => {
  it('show within two seconds, and are stored once the writer has committed them', async () => {
    const looker = collect(
      hub.subscribe({ environmentId, filter: NO_FILTER, masks: false, isStillAllowed: () => true }),
    );
    await until('it is watched', () => looker.status()?.isWatching === true);
    for (let round = 0; round < ROUNDS; round++) {
      await send(`round ${round}`);
      const sentMs = performance.now();
      await until('it is told', () => looker.of('message').some(({ name }) => name === `round ${round}`));
      expect(performance.now() - sentMs).toBeLessThan(2_000);
    }
    expect(looker.of('fate')).toEqual([]);
    writer = await openRecordConsumer({
      brokers: testStores().kafka,
      groupId: WRITER,
      topics: [stores.prefix + TOPICS.messages.name],
      sessionTimeoutMs: 10_000,
      onBatch: async () => {},
    });
    await until('all are stored', () => looker.of('fate').filter(({ fate }) => fate === 'stored').length === ROUNDS);
    looker.subscriber.close();
  });

  it('tell rejections and dead letters, and nothing of another environment', async () => {
    const looker = collect(
      hub.subscribe({ environmentId, filter: NO_FILTER, masks: false, isStillAllowed: () => true }),
    );
    await until('it is watched', () => looker.status()?.isWatching === true);
    const topic = stores.prefix + TOPICS.rejections.name;
    const rejection = {
      environmentId,
      code: 'INVALID_ENUM',
      field: 'surface',
      surface: '',
      library: '',
      libraryVersion: '',
    };
    const body = rejectionCodec.encode({ ...rejection, receivedAt: Date.now(), traceId: 'a'.repeat(32) });
    await producer.sendForOffset({ topic, key: null, value: frameRecord(stores.schemaIdOf(topic), body) });
    const { topic: messages, value, place } = await send('unlucky');
    await send('of another', { environmentId: `${environmentId}-2` });
    const headers = {
      reason: 'too large: words of it',
      'original-topic': messages,
      'original-partition': String(place.partition),
      'original-offset': String(place.offset),
    };
    await producer.sendForOffset({ topic: `${messages}.dead`, key: null, value, headers });
    await until('all is told', () =>
      looker.events.some((event) => 'fate' in event && event.fate === 'dead-lettered' && event.reason === 'too large'),
    );
    await until('the rejection too', () => looker.of('rejection').length === 1);
    expect(JSON.stringify(looker.events)).not.toMatch(/of another|words of it/);
    looker.subscriber.close();
  });

  it('take away what somebody has sent who is fenced meanwhile, within seconds of the fence', async () => {
    const looker = collect(
      hub.subscribe({ environmentId, filter: NO_FILTER, masks: false, isStillAllowed: () => true }),
    );
    await until('it is watched', () => looker.status()?.isWatching === true);
    await send('hers', { userKey: ada, userId: 'ada' });
    await until('it is told', () => looker.of('message').length > 0);
    const cutoffAt = new Date(Date.now() + 1_000).toISOString().replace('T', ' ').replace('Z', '');
    await stores.query(
      `INSERT INTO erasure_fences (environment_id, identity_key, cutoff_at, erasure_id)
       VALUES ('${environmentId}', unhex('${ada.toString('hex')}'), '${cutoffAt}', generateUUIDv4())`,
    );
    const sinceMs = performance.now();
    await until('it is taken away', () => looker.of('fate').some(({ fate }) => fate === 'fenced'));
    // The set of fences is asked for each second, and what is held is looked at four times a second.
    expect(performance.now() - sinceMs).toBeLessThan(3_000);
    await send('hers again', { userKey: ada, userId: 'ada', eventTime: 1 });
    await until('the second came without a word', () => looker.of('message').some(({ fate }) => fate === 'fenced'));
    expect(JSON.stringify(looker.events)).not.toContain('hers again');
    looker.subscriber.close();
  });
});
