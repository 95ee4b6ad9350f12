import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  frameRecord,
  type IdentityDecisionRecord,
  identityDecisionCodec,
  messageRecordCodec,
  TOPICS,
} from '@playline/contracts';
import type { Consumer } from '@playline/stream';
import { createRegistryAdmin, openRecordConsumer } from '@playline/stream/kafka';
import { messageRecordOf, testStores, until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openRealStores, type RealStores } from './test/open-stores.ts';
import { toDecision } from './test/records.ts';

let stores: RealStores;
let messages: string;
let writer: ChildProcess;
let deadLetterReader: Consumer;
let deadLetters = 0;

const message = (environmentId: string) =>
  stores.outgoing(TOPICS.messages, messageRecordCodec, messageRecordOf('event', { environmentId }));
const countRows = async (environment: string) => {
  const counts = 'toUInt32(count()) AS rows, toUInt32(uniqExact(message_id)) AS ids';
  const query = `SELECT ${counts} FROM events WHERE environment_id = '${environment}'`;
  return (await stores.readRows<{ rows: number; ids: number }>(query))[0]!;
};

beforeAll(async () => {
  stores = await openRealStores([TOPICS.messages.name, TOPICS.identityDecisions.name]);
  messages = stores.prefix + TOPICS.messages.name;
  await stores.query('SYSTEM STOP MERGES events');
  deadLetterReader = await openRecordConsumer({
    brokers: testStores().kafka,
    groupId: `${stores.prefix}dead`,
    topics: [`${messages}.dead`],
    sessionTimeoutMs: 10_000,
    onBatch: async (records) => {
      deadLetters += records.length;
    },
  });
  writer = await stores.startWriter('flow');
});
afterAll(async () => {
  await stores.killWriters();
  await deadLetterReader.close();
  await stores.close();
});

it('the event writer stores messages and decisions as rows, and publishes unreadable records as dead letters', async () => {
  const [a, b] = [randomBytes(16), randomBytes(16)];
  const moved = [
    { key: a, kind: 'anonymous', linkedAt: 1_790_000_000_000 },
    { key: b, kind: 'steam', linkedAt: 1_790_000_000_000 },
  ] satisfies IdentityDecisionRecord['moved'];
  const link = { generation: 1, offset: 41, aKey: a, bKey: b, root: a, moved };
  const record = toDecision({ environmentId: 'test-flow', ...link });
  const decision = stores.outgoing(TOPICS.identityDecisions, identityDecisionCodec, record, a);
  await stores.publish([message('test-flow'), message('test-flow')]);
  await stores.publish([{ topic: messages, key: null, value: Buffer.from('no frame') }, decision]);
  // A linker that was killed before its commit publishes the decision twice.
  await stores.publish([decision]);

  await until('two events are stored', async () => (await countRows('test-flow')).rows === 2);
  const overrides = await until('two overrides are stored', async () => {
    const query =
      'SELECT lower(hex(identity_key)) AS key, lower(hex(person_key)) AS person, kind, toString(version) AS version ' +
      "FROM identity_overrides FINAL WHERE environment_id = 'test-flow' ORDER BY kind";
    const rows = await stores.readRows<Record<string, string>>(query);
    return rows.length === 2 && rows;
  });
  const person = a.toString('hex');
  const version = String((1n << 56n) | (41n << 8n));
  expect(overrides).toEqual([
    { key: person, person, kind: 'anonymous', version },
    { key: b.toString('hex'), person, kind: 'steam', version },
  ]);
  await until('a dead letter is published', () => deadLetters === 1);
  const links = await stores.readRows(
    "SELECT link_offset, outcome, moved_count FROM identity_links FINAL WHERE environment_id = 'test-flow'",
  );
  expect(links).toMatchObject([{ outcome: 'linked', moved_count: 2 }]);
});

it('the event writer waits for a new schema, and publishes a record with an unknown schema as a dead letter', async () => {
  const schema = JSON.parse(messageRecordCodec.schema) as { fields: object[] };
  const fields = [...schema.fields, { name: 'more', type: 'string', default: '' }];
  const registry = createRegistryAdmin({ url: testStores().registry });
  const id = await registry.register(`${messages}-value`, JSON.stringify({ ...schema, fields }));
  const record = messageRecordOf('newer', { environmentId: 'test-schemas' });
  const body = Buffer.concat([messageRecordCodec.encode(record), Buffer.of(2, 65)]);
  const before = deadLetters;
  await stores.publish(
    [id, 2_000_000_000].map((each) => ({ topic: messages, key: null, value: frameRecord(each, body) })),
  );
  await until('the event is stored', async () => (await countRows('test-schemas')).rows === 1);
  await until('a dead letter is published', () => deadLetters > before);
  expect(await stores.stop(writer, 'SIGTERM')).toBe(0);
  expect((await countRows('test-schemas')).rows).toBe(1);
});

it('the event writer neither loses nor duplicates messages when it is killed repeatedly', async () => {
  const environment = 'test-killed';
  const batches = Array.from({ length: 20 }, () => Array.from({ length: 500 }, () => message(environment)));
  const all = 20 * 500;
  const settings = { BLOCK_ROWS_MAX: '300', BLOCK_AGE_MAX_MS: '20' };
  const stored = async () => (await countRows(environment)).ids;
  expect(await stores.killRepeatedly({ group: 'killed', kills: 2, settings, batches, stored, all })).toBe(0);
  expect(await countRows(environment)).toEqual({ rows: all, ids: all });
  // Three starts and two session timeouts take a long time on a busy machine.
}, 240_000);
