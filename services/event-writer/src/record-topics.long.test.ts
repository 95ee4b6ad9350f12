import { randomBytes } from 'node:crypto';
import { type ConsentRecord, consentCodec, type RejectionRecord, rejectionCodec, TOPICS } from '@playline/contracts';
import { testStores, until } from '@playline/testkit';
import { Kafka, logLevel } from 'kafkajs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openRealStores, type RealStores } from './test/open-stores.ts';

const RECEIVED_MS = 1_790_000_000_000;
const ENVIRONMENT = 'test-records';
const kafka = new Kafka({ clientId: 'test', brokers: testStores().kafka, logLevel: logLevel.NOTHING });

let stores: RealStores;
beforeAll(async () => {
  stores = await openRealStores([TOPICS.consents.name, TOPICS.rejections.name]);
  await stores.startWriter('records');
});
afterAll(async () => {
  await stores.killWriters();
  await stores.close();
});

const consentRecord = (identityKey: Buffer, status: ConsentRecord['status'], source = 'banner') => {
  const record = { environmentId: ENVIRONMENT, identityKey, status, source, receivedAt: RECEIVED_MS, traceId: 'trace' };
  return stores.outgoing(TOPICS.consents, consentCodec, record, Buffer.concat([Buffer.from(ENVIRONMENT), identityKey]));
};
const rejectionRecord = (traceId: string) => {
  const record: RejectionRecord = {
    environmentId: ENVIRONMENT,
    code: 'INVALID_FORMAT',
    field: 'messageId',
    surface: 'unity',
    library: 'playline-unity',
    libraryVersion: '2.0.1',
    receivedAt: Date.now(),
    traceId,
    messageIndex: 0,
  };
  return stores.outgoing(TOPICS.rejections, rejectionCodec, record, Buffer.from(ENVIRONMENT));
};
const toFilter = (key: Buffer) =>
  `WHERE environment_id = '${ENVIRONMENT}' AND identity_key = unhex('${key.toString('hex')}')`;

it("the event writer stores every consent change with the broker's timestamp, and shows the latest change", async () => {
  const [identity, other] = [randomBytes(16), randomBytes(16)];
  await stores.publish([consentRecord(identity, 'full'), consentRecord(other, 'anonymous')]);
  await until(
    'two consents are stored',
    async () => (await stores.readRows('SELECT 1 FROM consents_current')).length === 2,
  );
  const producer = kafka.producer();
  await producer.connect();
  const before = Date.now();
  const { topic, key, value } = consentRecord(identity, 'none', 'settings');
  await producer.send({ topic, messages: [{ key, value, timestamp: '1000' }] });
  await producer.disconnect();
  const changes = () => stores.readRows(`SELECT status FROM consent_log ${toFilter(identity)} ORDER BY kafka_offset`);
  await until('the change is stored', async () => (await changes()).length === 2);
  expect(await changes()).toEqual([{ status: 'full' }, { status: 'none' }]);
  const current = await stores.readRows(`SELECT status FROM consents_current ${toFilter(other)}`);
  expect(current).toEqual([{ status: 'anonymous' }]);
  const [latest] = await stores.readRows<Record<string, string>>(
    'SELECT status, source, toString(toUnixTimestamp64Milli(received_at)) AS received, trace_id, ' +
      `toString(toUnixTimestamp64Milli(logged_at)) AS logged FROM consents_current ${toFilter(identity)}`,
  );
  const expected = { status: 'none', source: 'settings', received: String(RECEIVED_MS), trace_id: 'trace' };
  expect(latest).toMatchObject(expected);
  // The broker uses this machine's clock. One second covers the clock resolution.
  expect(Number(latest?.logged)).toBeGreaterThan(before - 1_000);
});

it('the event writer stores rejections, and publishes invalid records as dead letters', async () => {
  const traceId = randomBytes(16).toString('hex');
  const topic = stores.prefix + TOPICS.rejections.name;
  await stores.publish([rejectionRecord(traceId), { topic, key: null, value: Buffer.from('no frame') }]);
  const rows = await until('the rejection is stored', async () => {
    const columns = 'environment_id, code, field, surface, library, library_version';
    const found = await stores.readRows(`SELECT ${columns} FROM message_rejections WHERE trace_id = '${traceId}'`);
    return found.length > 0 && found;
  });
  expect(rows).toEqual([
    {
      environment_id: ENVIRONMENT,
      code: 'INVALID_FORMAT',
      field: 'messageId',
      surface: 'unity',
      library: 'playline-unity',
      library_version: '2.0.1',
    },
  ]);
  const admin = kafka.admin();
  await admin.connect();
  await until('the dead letter is published', async () => {
    const offsets = await admin.fetchTopicOffsets(`${topic}.dead`);
    return offsets.reduce((sum, { high }) => sum + Number(high), 0) === 1;
  });
  await admin.disconnect();
});
