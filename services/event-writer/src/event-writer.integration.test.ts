import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import {
  frameRecord,
  type IdentityDecisionRecord,
  identityDecisionCodec,
  type MessageRecord,
  messageRecordCodec,
  TOPICS,
  ZERO_KEY,
} from '@playline/contracts';
import { applySql } from '@playline/infra/clickhouse';
import { applyTopics, dropTopics } from '@playline/infra/kafka';
import type { Consumer, OutgoingRecord, Producer } from '@playline/stream';
import { openProducer, openRecordConsumer } from '@playline/stream/kafka';
import { testStores, until } from '@playline/testkit';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';

const stores = testStores();
const name = randomBytes(6).toString('hex');
const prefix = `test-${name}.`;
const database = `playline_test_${name}`;
const NOW_MS = 1_790_000_000_000;
const messages = prefix + TOPICS.messages.name;
const decisions = prefix + TOPICS.identityDecisions.name;

const TEXTS = (
  'anonymousId userId identityType fromId fromType toId toType deviceId sessionId surface consentLevel library ' +
  'libraryVersion userAgent locale timezone screen pageUrl pagePath pageReferrer pageTitle browserLanguage ' +
  'properties traits traceId'
).split(' ');

const message = (environmentId: string, eventName: string): MessageRecord =>
  ({
    ...Object.fromEntries(TEXTS.map((field) => [field, field])),
    environmentId,
    type: 'track',
    eventName,
    eventTime: NOW_MS,
    receivedAt: NOW_MS,
    messageId: randomBytes(16),
    identityKey: ZERO_KEY,
    anonymousKey: ZERO_KEY,
    userKey: ZERO_KEY,
    fromKey: ZERO_KEY,
    toKey: ZERO_KEY,
    test: false,
    screenDensity: null,
  }) as unknown as MessageRecord;

const decisionOf = (a: Buffer, b: Buffer): IdentityDecisionRecord => ({
  environmentId: 'test-flow',
  generation: 1,
  partition: 0,
  offset: 41,
  step: 0,
  messageId: randomBytes(16),
  link: 'identify',
  aKey: a,
  aKind: 'anonymous',
  bKey: b,
  bKind: 'steam',
  outcome: 'linked',
  reason: '',
  root: a,
  moved: [
    { key: a, kind: 'anonymous', linkedAt: NOW_MS },
    { key: b, kind: 'steam', linkedAt: NOW_MS },
  ],
  eventTime: NOW_MS,
  receivedAt: NOW_MS,
  traceId: 'trace',
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

describe('the event writer as a process', () => {
  let producer: Producer;
  let deadReader: Consumer;
  let deadLetters = 0;
  let schemas: Map<string, number>;
  const running = new Set<ChildProcess>();

  async function startWriter(group: string, settings: Record<string, string> = {}): Promise<ChildProcess> {
    const port = await freePort();
    const child = spawn(process.execPath, [new URL('./main.ts', import.meta.url).pathname], {
      env: {
        PATH: process.env.PATH,
        LOG_LEVEL: 'warn',
        KAFKA_BROKERS: stores.kafka.join(','),
        SCHEMA_REGISTRY_URL: stores.registry,
        CLICKHOUSE_URL: stores.clickhouse.url,
        CLICKHOUSE_USER: stores.clickhouse.user,
        CLICKHOUSE_PASSWORD: stores.clickhouse.password,
        CLICKHOUSE_DATABASE: database,
        TOPIC_PREFIX: prefix,
        CONSUMER_GROUP: prefix + group,
        ADMIN_PORT: String(port),
        SESSION_TIMEOUT_MS: '2000',
        BLOCK_AGE_MAX_MS: '50',
        ...settings,
      },
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    running.add(child);
    child.once('exit', () => running.delete(child));
    await until('the writer is ready', async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok);
    return child;
  }
  async function stop(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
    const exit = once(child, 'exit');
    child.kill(signal);
    return (await exit)[0];
  }
  const publish = (records: OutgoingRecord[]) =>
    new Promise<void>((resolve, reject) => {
      producer.send(records, (fault) => (fault === null ? resolve() : reject(fault)));
    });
  const publishMessages = (list: MessageRecord[]) =>
    publish(
      list.map((record) => ({
        topic: messages,
        key: null,
        value: frameRecord(schemas.get(`${messages}-value`)!, messageRecordCodec.encode(record)),
      })),
    );
  async function query(text: string): Promise<string> {
    const { url, user, password } = stores.clickhouse;
    const headers = { 'x-clickhouse-user': user, 'x-clickhouse-key': password, 'x-clickhouse-database': database };
    const answer = await fetch(url, { method: 'POST', headers, body: text });
    if (!answer.ok) throw new Error(await answer.text());
    return answer.text();
  }
  const rowsOf = async <T>(text: string): Promise<T[]> =>
    (await query(`${text} FORMAT JSONEachRow`))
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as T);
  const countOf = async (environment: string) => {
    const query = `SELECT toUInt32(count()) AS rows, toUInt32(uniqExact(message_id)) AS ids FROM events WHERE environment_id = '${environment}'`;
    return (await rowsOf<{ rows: number; ids: number }>(query))[0]!;
  };

  beforeAll(async () => {
    const applied = await applyTopics({ brokers: stores.kafka, registry: stores.registry, prefix, partitions: 2 });
    schemas = new Map(applied.schemas.map(({ subject, id }) => [subject, id]));
    await applySql({ ...stores.clickhouse, database });
    await query('SYSTEM STOP MERGES events');
    deadReader = await openRecordConsumer({
      brokers: stores.kafka,
      groupId: `${prefix}dead`,
      topics: [`${messages}.dead`],
      sessionTimeoutMs: 10_000,
      onBatch: async (records) => {
        deadLetters += records.length;
      },
    });
    producer = await openProducer({ brokers: stores.kafka, clientId: 'test', topics: [messages, decisions] });
    await until('the producer is ready', () => producer.ready());
  });
  afterEach(async () => {
    await Promise.all([...running].map((child) => stop(child, 'SIGKILL')));
  });
  afterAll(async () => {
    await producer.close();
    await deadReader.close();
    await query(`DROP DATABASE ${database} SYNC`);
    await dropTopics({ brokers: stores.kafka, registry: stores.registry, prefix });
  });

  it('turns messages and decisions into rows, and keeps what it cannot read as a dead letter', async () => {
    const writer = await startWriter('flow');
    await publishMessages([message('test-flow', 'one'), message('test-flow', 'two')]);
    await publish([{ topic: messages, key: null, value: Buffer.from('no frame') }]);
    const keys = [randomBytes(16), randomBytes(16)];
    const [a, b] = keys as [Buffer, Buffer];
    const decision = decisionOf(a, b);
    const value = frameRecord(schemas.get(`${decisions}-value`)!, identityDecisionCodec.encode(decision));
    await publish([{ topic: decisions, key: Buffer.from('test-flow'), value }]);
    // The same decision once more, as a linker that died before its commit publishes it.
    await publish([{ topic: decisions, key: Buffer.from('test-flow'), value }]);

    await until('two events', async () => (await countOf('test-flow')).rows === 2);
    const overrides = await until('two overrides', async () => {
      const query =
        'SELECT lower(hex(identity_key)) AS key, lower(hex(person_key)) AS person, kind, toString(version) AS version ' +
        "FROM identity_overrides FINAL WHERE environment_id = 'test-flow' ORDER BY kind";
      const rows = await rowsOf<Record<string, string>>(query);
      return rows.length === 2 && rows;
    });
    const person = a.toString('hex');
    const version = String((1n << 56n) | (41n << 8n));
    expect(overrides).toEqual([
      { key: person, person, kind: 'anonymous', version },
      { key: b.toString('hex'), person, kind: 'steam', version },
    ]);
    await until('a dead letter', () => deadLetters === 1);
    const links = await rowsOf(
      "SELECT link_offset, outcome, moved_count FROM identity_links FINAL WHERE environment_id = 'test-flow'",
    );
    expect(links).toMatchObject([{ outcome: 'linked', moved_count: 2 }]);
    expect(await stop(writer, 'SIGTERM')).toBe(0);
  });

  it('waits for a schema it has not seen, and keeps a record of an id that the registry does not know', async () => {
    const writer = await startWriter('schemas');
    const subject = `${messages}-value`;
    const schema = JSON.parse(messageRecordCodec.schema) as { fields: object[] };
    const newer = JSON.stringify({
      ...schema,
      fields: [...schema.fields, { name: 'more', type: 'string', default: '' }],
    });
    const answer = await fetch(`${stores.registry}/subjects/${subject}/versions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ schema: newer }),
    });
    const { id } = (await answer.json()) as { id: number };
    // One string more at the end of the record.
    const body = Buffer.concat([messageRecordCodec.encode(message('test-schemas', 'newer')), Buffer.of(2, 65)]);
    const before = deadLetters;
    await publish([
      { topic: messages, key: null, value: frameRecord(id, body) },
      { topic: messages, key: null, value: frameRecord(2_000_000_000, body) },
    ]);
    await until('the event', async () => (await countOf('test-schemas')).rows === 1);
    await until('a dead letter', () => deadLetters > before);
    expect(await stop(writer, 'SIGTERM')).toBe(0);
    expect((await countOf('test-schemas')).rows).toBe(1);
  });

  it('loses nothing and doubles nothing when it is killed again and again while records come in', async () => {
    const environment = 'test-killed';
    const settings = { BLOCK_ROWS_MAX: '300', BLOCK_AGE_MAX_MS: '20' };
    const sent = 20 * 500;
    let published = 0;
    const publishing = (async () => {
      for (let batch = 0; batch < 20; batch++) {
        await publishMessages(Array.from({ length: 500 }, () => message(environment, 'killed')));
        published += 500;
      }
    })();
    for (let kill = 0; kill < 3; kill++) {
      const writer = await startWriter('killed', settings);
      const before = (await countOf(environment)).rows;
      await until('rows come', async () => (await countOf(environment)).rows > before || published === before);
      await stop(writer, 'SIGKILL');
    }
    await publishing;
    const writer = await startWriter('killed', settings);
    await until('every message', async () => (await countOf(environment)).ids === sent, 90_000);
    expect(await stop(writer, 'SIGTERM')).toBe(0);
    expect(await countOf(environment)).toEqual({ rows: sent, ids: sent });
    // Four starts, three sessions that run out: long on a busy machine.
  }, 240_000);
});
