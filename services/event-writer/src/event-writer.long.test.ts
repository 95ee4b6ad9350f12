import { randomBytes } from 'node:crypto';
import {
  frameRecord,
  type IdentityDecisionRecord,
  identityDecisionCodec,
  type MessageRecord,
  messageRecordCodec,
  TOPICS,
} from '@playline/contracts';
import type { Consumer } from '@playline/stream';
import { createRegistryAdmin, openRecordConsumer } from '@playline/stream/kafka';
import { messageRecordOf, testStores, until } from '@playline/testkit';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openRealStores, type RealStores } from './test/open-stores.ts';

const NOW_MS = 1_790_000_000_000;

const message = (environmentId: string, eventName: string) => messageRecordOf(eventName, { environmentId });

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
  unlink: null,
});

describe('the event writer as a process', () => {
  let stores: RealStores;
  let messages: string;
  let decisions: string;
  let deadReader: Consumer;
  let deadLetters = 0;
  const publishMessages = (list: MessageRecord[]) =>
    stores.publish(
      list.map((record) => ({
        topic: messages,
        key: null,
        value: frameRecord(stores.schemaIdOf(messages), messageRecordCodec.encode(record)),
      })),
    );
  const countOf = async (environment: string) => {
    const query = `SELECT toUInt32(count()) AS rows, toUInt32(uniqExact(message_id)) AS ids FROM events WHERE environment_id = '${environment}'`;
    return (await stores.rowsOf<{ rows: number; ids: number }>(query))[0]!;
  };

  beforeAll(async () => {
    stores = await openRealStores([TOPICS.messages.name, TOPICS.identityDecisions.name]);
    messages = stores.prefix + TOPICS.messages.name;
    decisions = stores.prefix + TOPICS.identityDecisions.name;
    await stores.query('SYSTEM STOP MERGES events');
    deadReader = await openRecordConsumer({
      brokers: testStores().kafka,
      groupId: `${stores.prefix}dead`,
      topics: [`${messages}.dead`],
      sessionTimeoutMs: 10_000,
      onBatch: async (records) => {
        deadLetters += records.length;
      },
    });
  });
  afterEach(() => stores.killWriters());
  afterAll(async () => {
    await deadReader.close();
    await stores.close();
  });

  it('turns messages and decisions into rows, and keeps unreadable records as dead letters', async () => {
    const writer = await stores.startWriter('flow');
    await publishMessages([message('test-flow', 'one'), message('test-flow', 'two')]);
    await stores.publish([{ topic: messages, key: null, value: Buffer.from('no frame') }]);
    const keys = [randomBytes(16), randomBytes(16)];
    const [a, b] = keys as [Buffer, Buffer];
    const decision = decisionOf(a, b);
    const value = frameRecord(stores.schemaIdOf(decisions), identityDecisionCodec.encode(decision));
    await stores.publish([{ topic: decisions, key: Buffer.from('test-flow'), value }]);
    // The same decision again, as a linker publishes it that died before its commit.
    await stores.publish([{ topic: decisions, key: Buffer.from('test-flow'), value }]);

    await until('two events', async () => (await countOf('test-flow')).rows === 2);
    const overrides = await until('two overrides', async () => {
      const query =
        'SELECT lower(hex(identity_key)) AS key, lower(hex(person_key)) AS person, kind, toString(version) AS version ' +
        "FROM identity_overrides FINAL WHERE environment_id = 'test-flow' ORDER BY kind";
      const rows = await stores.rowsOf<Record<string, string>>(query);
      return rows.length === 2 && rows;
    });
    const person = a.toString('hex');
    const version = String((1n << 56n) | (41n << 8n));
    expect(overrides).toEqual([
      { key: person, person, kind: 'anonymous', version },
      { key: b.toString('hex'), person, kind: 'steam', version },
    ]);
    await until('a dead letter', () => deadLetters === 1);
    const links = await stores.rowsOf(
      "SELECT link_offset, outcome, moved_count FROM identity_links FINAL WHERE environment_id = 'test-flow'",
    );
    expect(links).toMatchObject([{ outcome: 'linked', moved_count: 2 }]);
    expect(await stores.stop(writer, 'SIGTERM')).toBe(0);
  });

  it('waits for a schema it has not seen, and keeps a record with an unknown schema id as a dead letter', async () => {
    const writer = await stores.startWriter('schemas');
    const subject = `${messages}-value`;
    const schema = JSON.parse(messageRecordCodec.schema) as { fields: object[] };
    const newer = JSON.stringify({
      ...schema,
      fields: [...schema.fields, { name: 'more', type: 'string', default: '' }],
    });
    const id = await createRegistryAdmin({ url: testStores().registry }).register(subject, newer);
    // The newer schema has one more string at the end.
    const body = Buffer.concat([messageRecordCodec.encode(message('test-schemas', 'newer')), Buffer.of(2, 65)]);
    const before = deadLetters;
    await stores.publish([
      { topic: messages, key: null, value: frameRecord(id, body) },
      { topic: messages, key: null, value: frameRecord(2_000_000_000, body) },
    ]);
    await until('the event', async () => (await countOf('test-schemas')).rows === 1);
    await until('a dead letter', () => deadLetters > before);
    expect(await stores.stop(writer, 'SIGTERM')).toBe(0);
    expect((await countOf('test-schemas')).rows).toBe(1);
  });

  it('loses and duplicates nothing when it is killed again and again while records come in', async () => {
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
      const writer = await stores.startWriter('killed', settings);
      const before = (await countOf(environment)).rows;
      await until('rows come', async () => (await countOf(environment)).rows > before || published === before);
      await stores.stop(writer, 'SIGKILL');
    }
    await publishing;
    const writer = await stores.startWriter('killed', settings);
    await until('every message', async () => (await countOf(environment)).ids === sent, 90_000);
    expect(await stores.stop(writer, 'SIGTERM')).toBe(0);
    expect(await countOf(environment)).toEqual({ rows: sent, ids: sent });
    // Four starts and three session timeouts take long on a busy machine.
  }, 240_000);
});
